import { Logger } from '@nestjs/common';
import { NestFactory, Reflector } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger as PinoLogger } from 'pino';
import { AppModule } from './app.module';
import { BearerGuard, TokenVerifier } from './auth';
import type { Settings } from './config';
import { createFastifyAdapter } from './server';
import type * as documentRoutes from './openapi';
import { createLogger, identifyFailedRequests, logAccess, NestLogger } from './operations/logging';
import { Readiness, serveHealth } from './operations/health';
import { judgeBeforeContinue, shedLoad } from './operations/limits';
import { Metrics } from './operations/metrics';
import { Tracing } from './operations/tracing';
import { PlantsRepository } from './plants/standalone';

/**
 * The standalone service, ready to listen.
 *
 * @throws StoreOpenError when the store cannot be used
 * @throws OperatorError when traces are enabled and OpenTelemetry is not installed
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
  for (const warning of settings.warnings) new Logger('Environment').warn(warning);
  equip(app, settings, logger);
  return app;
}

/** Adds what operators need: metrics, traces, logs, load shedding, health, the OpenAPI document. */
export function equip(app: NestFastifyApplication, settings: Settings, logger: PinoLogger): void {
  const instance = app.getHttpAdapter().getInstance();
  app.get(Metrics).measure(instance);
  if (settings.tracing) app.get(Tracing).start(instance);
  identifyFailedRequests();
  shedLoad(instance, app.get(PlantsRepository, { strict: false }));
  judgeBeforeContinue(instance, new BearerGuard(app.get(TokenVerifier), app.get(Reflector)));
  if (settings.accessLog) logAccess(instance, logger);
  serveHealth(instance, app.get(Readiness));
  if (settings.docs) {
    const { serveDocument } = require('./openapi') as typeof documentRoutes;
    serveDocument(app);
  }
}
