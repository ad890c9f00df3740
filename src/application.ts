import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { AppModule } from './app.module';
import type { Settings } from './config/environment';
import { createFastifyAdapter } from './http/fastify-adapter';
import { serveDocument } from './openapi/document';
import { logAccess } from './operations/access-log';
import { serveHealth } from './operations/health';
import { createLogger } from './operations/logger';
import { shedLoad } from './operations/load-shedding';
import { Metrics } from './operations/metrics';
import { NestLogger } from './operations/nest-logger';
import { Readiness } from './operations/readiness';
import { trackRequests } from './operations/request-context';
import { PlantsRepository } from './plants';

/**
 * The standalone service, ready to listen.
 *
 * @throws StoreOpenError when the store cannot be used
 */
export async function createApplication(settings: Settings): Promise<NestFastifyApplication> {
  const logger = createLogger(settings.logLevel);
  const app = await NestFactory.create<NestFastifyApplication>(
    AppModule.register(settings),
    createFastifyAdapter(settings),
    {
      bodyParser: false,
      abortOnError: false,
      logger: new NestLogger(logger),
    },
  );
  const instance = app.getHttpAdapter().getInstance();
  app.get(Metrics).measure(instance);
  trackRequests(instance);
  shedLoad(instance, app.get(PlantsRepository, { strict: false }));
  if (settings.accessLog) logAccess(instance, logger);
  serveHealth(instance, app.get(Readiness));
  if (settings.docs) serveDocument(app);
  return app;
}
