import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { pino } from 'pino';
import { AppModule } from './app.module';
import type { Settings } from './config/environment';
import { createFastifyAdapter } from './http/fastify-adapter';
import { serveDocument } from './openapi/document.routes';
import { logAccess } from './operations/access-log';
import { NestLogger } from './operations/nest-logger';

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
