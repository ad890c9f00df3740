import 'reflect-metadata';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { createGunzip } from 'node:zlib';
import {
  Body,
  Controller,
  Get,
  HttpException,
  Module,
  Param,
  Post,
  UseGuards,
  ValidationPipe,
  VersioningType,
} from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { map, NEVER, of, switchMap, timeout } from 'rxjs';
import { PlantsModule, type PlantsModuleOptions } from '../../../src/plants';

/**
 * A host that uses everything globally: parsers with small limits, a guard, a strict ValidationPipe, a filter, an
 * interceptor that wraps responses, a prefix and versions. It needs no flag for the module. Request headers
 * determine what these do to a request.
 */

const { PLATFORM, PLANTS, EXCLUDED } = process.env;

/** The maximum size of bodies at the host's own routes. */
const MAX_BODY_BYTES = 300;

@Controller('trees')
class TreesController {
  @Post()
  plant(@Body() body: unknown): object {
    return { received: body ?? null };
  }

  @Get('number/:id')
  echo(@Param('id') id: string): string {
    return `tree ${id}`;
  }

  @Get('guarded')
  @UseGuards({ canActivate: () => false })
  guarded(): string {
    return 'in';
  }

  @Get('broken')
  broken(): never {
    throw new Error('of the host');
  }
}

const useFactory = () => JSON.parse(PLANTS ?? '') as PlantsModuleOptions;

@Module({
  imports: PLANTS === undefined ? [] : [PlantsModule.forRootAsync({ useFactory })],
  controllers: [TreesController],
})
class AppModule {}

async function createAdapter(): Promise<AbstractHttpAdapter> {
  if (PLATFORM === 'express') {
    const express = new ExpressAdapter();
    express.use((request: IncomingMessage, _response: unknown, next: () => void) => {
      touchBody(request, next);
    });
    return express;
  }
  // A bundle contains only Express.
  const { FastifyAdapter } = await import(/* webpackIgnore: true */ '@nestjs/platform-fastify');
  const fastify = new FastifyAdapter({ bodyLimit: MAX_BODY_BYTES });
  const instance = fastify.getInstance();
  instance.addHook('onRequest', (request, _reply, done) => {
    touchBody(request.raw, done);
  });
  instance.addHook('preParsing', ({ headers }, _reply, payload, done) => {
    if (headers['x-replace'] === 'pipe') done(null, payload.pipe(new PassThrough()));
    else if (headers['x-replace'] === 'gunzip') done(null, payload.pipe(createGunzip()));
    else done(null, payload);
  });
  return fastify;
}

/** Touches a body before the module reads it, as middleware may do. */
function touchBody(message: IncomingMessage, next: () => void): void {
  const how = message.headers['x-touch'];
  if (how === 'end') {
    message.resume().on('end', next);
    return;
  }
  if (how === 'pause') message.pause();
  next();
}

async function start(): Promise<void> {
  const app = await NestFactory.create<NestExpressApplication>(AppModule, await createAdapter(), {
    logger: ['error', 'warn'],
    abortOnError: false,
  });
  app.setGlobalPrefix('api', EXCLUDED ? { exclude: [EXCLUDED] } : {});
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
      const status = headers['x-status'];
      if (status === undefined) return headers['x-robot'] === undefined;
      const exception = new HttpException('of the host', Number(status));
      throw Object.assign(exception, { headers: { 'retry-after': '7' } });
    },
  });
  const strict = { whitelist: true, transform: true, forbidNonWhitelisted: true };
  app.useGlobalPipes(new ValidationPipe({ ...strict, validateCustomDecorators: true }));
  app.useGlobalInterceptors({
    intercept: (context, next) => {
      const { headers } = context.switchToHttp().getRequest<IncomingMessage>();
      const isDelayed = headers['x-delay'] !== undefined;
      return next.handle().pipe(
        switchMap((data: unknown) => (isDelayed ? NEVER.pipe(timeout(1)) : of(data))),
        map((data) => ({ data })),
      );
    },
  });
  if (PLATFORM === 'express') {
    app.useBodyParser('json', { limit: MAX_BODY_BYTES, type: ['json', 'text/json'] });
    app.useBodyParser('text', { limit: MAX_BODY_BYTES });
  }
  await app.listen(0, '127.0.0.1');
  process.stdout.write(`Listening on ${await app.getUrl()}\n`);
}

void start();
