import {
  Body,
  Controller,
  Get,
  HttpException,
  type INestApplication,
  Module,
  type ModuleMetadata,
  type NestApplicationOptions,
  Post,
  VersioningType,
} from '@nestjs/common';
import { AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** A schema of the host that has the name of one of ours. */
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

/** The host's own feature. */
@Module({ controllers: [TreesController] })
class OrchardModule {}

export const adapters = {
  Fastify: (): AbstractHttpAdapter => new FastifyAdapter({ bodyLimit: 4 * 2 ** 20 }),
  Express: (): AbstractHttpAdapter => new ExpressAdapter(),
};

/** A host that listens, with a global prefix, versions, and the given imports beside its own feature. */
export async function startHost(
  adapter: keyof typeof adapters,
  imports: NonNullable<ModuleMetadata['imports']>,
  options: NestApplicationOptions = {},
): Promise<{ app: INestApplication; url: URL }> {
  @Module({ imports: [OrchardModule, ...imports] })
  class HostModule {}

  const app = await NestFactory.create(HostModule, adapters[adapter](), {
    logger: false,
    abortOnError: false,
    ...options,
  });
  // It knows nothing of the Error body.
  app.useGlobalFilters({
    catch(exception, host) {
      const status = exception instanceof HttpException ? exception.getStatus() : 500;
      const response: unknown = host.switchToHttp().getResponse();
      app.getHttpAdapter().reply(response, { orchard: String(exception) }, status);
    },
  });
  app.setGlobalPrefix('api');
  app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
  if (adapter === 'Express') {
    (app as NestExpressApplication).useBodyParser('json', { limit: '4mb' });
  }
  await app.listen(0, '127.0.0.1');
  return { app, url: new URL(await app.getUrl()) };
}
