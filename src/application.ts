import { createRequire } from 'node:module';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { pino } from 'pino';
import { AppModule } from './app.module';
import type { Settings } from './config/environment';
import { createFastifyAdapter } from './http/fastify-adapter';
import type * as documentRoutes from './openapi/document.routes';
import { logAccess } from './operations/access-log';
import { NestLogger } from './operations/nest-logger';
import { hasSwagger } from './plants/dto/openapi';

/**
 * The standalone service, ready to listen.
 *
 * @throws StoreOpenError when the store cannot be used
 */
export async function createApplication(settings: Settings): Promise<NestFastifyApplication> {
  const logger = pino({ level: settings.logLevel });
  const app = await NestFactory.create<NestFastifyApplication>(
    AppModule.register(settings),
    createFastifyAdapter(settings),
    { bodyParser: false, abortOnError: false, logger: new NestLogger(logger) },
  );
  if (settings.accessLog) logAccess(app.getHttpAdapter().getInstance(), logger);
  if (settings.docs) serveDocument(app);
  return app;
}

/** Loaded late, because `@nestjs/swagger` need not be installed, and takes its time where it is. */
function serveDocument(app: NestFastifyApplication): void {
  if (hasSwagger) {
    const routes = createRequire(__filename)('./openapi/document.routes') as typeof documentRoutes;
    routes.serveDocument(app);
  } else {
    new Logger('PlantStore').warn('No /docs and /openapi.json: @nestjs/swagger is not installed.');
  }
}
