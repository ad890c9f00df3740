import 'reflect-metadata';
import type { IncomingMessage } from 'node:http';
import {
  Body,
  Controller,
  HttpException,
  Module,
  Post,
  ValidationPipe,
  VersioningType,
} from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { map } from 'rxjs';
import { PlantsModule, type PlantsModuleOptions } from '../../../src/plants';

/**
 * A host that uses everything globally: parsers with small limits, a guard, a strict ValidationPipe, a filter, an
 * interceptor that wraps responses, a prefix and versions.
 */

const { PLATFORM, PLANTS, RAW_BODY } = process.env;

/** The maximum size of bodies at the host's own routes. */
const MAX_BODY_BYTES = 300;

@Controller('trees')
class TreesController {
  @Post()
  plant(@Body() body: unknown): object {
    return { received: body ?? null };
  }
}

const useFactory = () => JSON.parse(PLANTS ?? '') as PlantsModuleOptions;

@Module({
  imports: [PlantsModule.forRootAsync({ useFactory })],
  controllers: [TreesController],
})
class AppModule {}

async function createAdapter(): Promise<AbstractHttpAdapter> {
  if (PLATFORM === 'express') return new ExpressAdapter();
  // A bundle contains only Express.
  const { FastifyAdapter } = await import(/* webpackIgnore: true */ '@nestjs/platform-fastify');
  return new FastifyAdapter({ bodyLimit: MAX_BODY_BYTES });
}

async function start(): Promise<void> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, await createAdapter(), {
    logger: ['error', 'warn'],
    abortOnError: false,
    rawBody: RAW_BODY !== undefined,
  });
  app.setGlobalPrefix('api');
  app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
  app.useGlobalFilters({
    catch(exception: Error, host) {
      const status = exception instanceof HttpException ? exception.getStatus() : 500;
      const response: unknown = host.switchToHttp().getResponse();
      app.getHttpAdapter().reply(response, { orchard: exception.message }, status);
    },
  });
  app.useGlobalGuards({
    canActivate: (context) => {
      const { headers } = context.switchToHttp().getRequest<IncomingMessage>();
      return headers['x-robot'] === undefined;
    },
  });
  const strict = { whitelist: true, transform: true, forbidNonWhitelisted: true };
  app.useGlobalPipes(new ValidationPipe({ ...strict, validateCustomDecorators: true }));
  app.useGlobalInterceptors({
    intercept: (_context, next) => next.handle().pipe(map((data: unknown) => ({ data }))),
  });
  if (PLATFORM === 'express') app.useBodyParser('json', { limit: MAX_BODY_BYTES });
  await app.listen(0, '127.0.0.1');
  process.stdout.write(`Listening on ${await app.getUrl()}\n`);
}

void start();
