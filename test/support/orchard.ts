import {
  Body,
  type CanActivate,
  Controller,
  type DynamicModule,
  Get,
  type INestApplication,
  Module,
  type ModuleMetadata,
  type NestApplicationOptions,
  Post,
  type Provider,
  type Type,
  VersioningType,
} from '@nestjs/common';
import { AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** A schema of the host with the same name as a schema of Plant Store. */
@ApiSchema({ name: 'Plant' })
class OrchardPlant {
  @ApiProperty()
  rows!: number;
}

@Controller('trees')
class TreesController {
  @Post()
  plant(@Body() body: OrchardPlant): OrchardPlant {
    return body;
  }

  @Get('broken')
  broken(): never {
    throw new Error('of the host');
  }
}

/** A feature of the host. */
@Module({ controllers: [TreesController] })
class OrchardModule {}

/** Functions that create the HTTP adapter of a host, by name. */
export const adapters = {
  Fastify: (): AbstractHttpAdapter => new FastifyAdapter({ bodyLimit: 4 * 2 ** 20 }),
  Express: (): AbstractHttpAdapter => new ExpressAdapter(),
};

@Module({})
class OtherModule {}

/** Creates another module of the host, with these providers. */
export const createModule = (...providers: Provider[]): DynamicModule => ({
  module: OtherModule,
  providers,
});

/** Creates the class of a guard of the host. */
export const createGuard = (canActivate: CanActivate['canActivate']): Type<CanActivate> =>
  class implements CanActivate {
    canActivate = canActivate;
  };

/** Creates a logger whose calls a test can read. */
export const createRecordingLogger = (): Record<'log' | 'warn' | 'error', jest.Mock> => ({
  log: jest.fn(),
  warn: jest.fn(),
  error: jest.fn(),
});

/**
 * Starts a host application with a global prefix, versioning, its own feature and these imports.
 *
 * @param configure called before the host listens
 */
export async function startHost(
  adapter: keyof typeof adapters,
  imports: NonNullable<ModuleMetadata['imports']>,
  options: NestApplicationOptions = {},
  configure: (app: INestApplication) => unknown = () => undefined,
): Promise<{ app: INestApplication; url: URL }> {
  @Module({ imports: [OrchardModule, ...imports] })
  class HostModule {}

  const app = await NestFactory.create(HostModule, adapters[adapter](), {
    logger: false,
    abortOnError: false,
    ...options,
  });
  app.setGlobalPrefix('api');
  app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
  if (adapter === 'Express' && options.bodyParser !== false) {
    (app as NestExpressApplication).useBodyParser('json', { limit: '4mb' });
  }
  await configure(app);
  await app.listen(0, '127.0.0.1');
  return { app, url: new URL(await app.getUrl()) };
}
