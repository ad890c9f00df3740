import type { IncomingMessage } from 'node:http';
import {
  Body,
  type CanActivate,
  Controller,
  type DynamicModule,
  Get,
  HttpException,
  type INestApplication,
  Module,
  type ModuleMetadata,
  type NestApplicationOptions,
  Post,
  type Provider,
  type Type,
  VersioningType,
} from '@nestjs/common';
import { AbstractHttpAdapter, HttpAdapterHost, NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import type { FastifyInstance } from 'fastify';

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

@Module({})
class OtherModule {}

/** Another module of the host, with providers of its own. */
export const withProviders = (...providers: Provider[]): DynamicModule => ({
  module: OtherModule,
  providers,
});

/** The class of a guard of the host. */
export const guardThat = (canActivate: CanActivate['canActivate']): Type<CanActivate> =>
  class implements CanActivate {
    canActivate = canActivate;
  };

/** A logger whose lines a test reads. */
export const recordingLogger = (): Record<'log' | 'warn' | 'error', jest.Mock> => ({
  log: jest.fn(),
  warn: jest.fn(),
  error: jest.fn(),
});

/** A request as the platform has it: middleware of Express and hooks of Fastify add to it. */
export interface PlatformRequest {
  body?: unknown;
  rawBody?: Buffer;
}

/** A module of the host with code that runs before its parsers and routes: middleware, or a hook of Fastify. */
export const withEarlyCode = (
  run: (message: IncomingMessage, request: PlatformRequest, next: () => void) => void,
): DynamicModule =>
  withProviders({
    provide: 'early',
    inject: [HttpAdapterHost],
    useFactory: ({ httpAdapter }: HttpAdapterHost) => {
      if (httpAdapter.getType() === 'fastify') {
        const instance = httpAdapter.getInstance<FastifyInstance>();
        instance.addHook('onRequest', (request, _reply, done) => {
          run(request.raw, request, done);
        });
      } else {
        httpAdapter.use((request: IncomingMessage, _response: unknown, next: () => void) => {
          run(request, request as PlatformRequest, next);
        });
      }
    },
  });

/**
 * A host that listens, with a global prefix, versions, and the given imports beside its own feature.
 *
 * @param configure changes the host before it listens
 */
export async function startHost(
  adapter: keyof typeof adapters,
  imports: NonNullable<ModuleMetadata['imports']>,
  options: NestApplicationOptions = {},
  configure: (app: INestApplication) => void = () => undefined,
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
  configure(app);
  await app.listen(0, '127.0.0.1');
  return { app, url: new URL(await app.getUrl()) };
}
