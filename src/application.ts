import { Logger } from '@nestjs/common';
import { NestFactory, Reflector } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger as PinoLogger } from 'pino';
import { AppModule } from './app.module';
import { BearerGuard, TokenVerifier } from './auth';
import type { Settings } from './config';
import { type Admission, createFastifyAdapter } from './server';
import type * as documentRoutes from './openapi';
import { createLogger, identifyFailedRequests, logAccess, NestLogger } from './operations/logging';
import { Readiness, serveHealth } from './operations/health';
import { shedLoad } from './operations/limits';
import { Metrics } from './operations/metrics';
import { Tracing } from './operations/tracing';
import { PlantsRepository } from './plants';

/**
 * The standalone service, ready to listen.
 *
 * @throws StoreOpenError when the store cannot be used
 * @throws OperatorError when traces are enabled and OpenTelemetry is not installed
 */
export async function createApplication(settings: Settings): Promise<NestFastifyApplication> {
  const logger = createLogger(settings.logLevel);
  const program: { admission?: Admission } = {};
  const app = await NestFactory.create<NestFastifyApplication>(
    AppModule.register(settings),
    createFastifyAdapter(settings, () => program.admission),
    { bodyParser: false, abortOnError: false, logger: new NestLogger(logger) },
  );
  for (const warning of settings.warnings) new Logger('Environment').warn(warning);
  program.admission = equip(app, settings, logger);
  return app;
}

/**
 * Adds what operators need: metrics, traces, logs, load shedding, health, the OpenAPI document.
 *
 * @returns what decides about creations before their bodies are read
 */
export function equip(
  app: NestFastifyApplication,
  settings: Settings,
  logger: PinoLogger,
): Admission {
  const instance = app.getHttpAdapter().getInstance();
  app.get(Metrics).measure(instance);
  if (settings.tracing) app.get(Tracing).start(instance);
  identifyFailedRequests();
  if (settings.accessLog) logAccess(instance, logger, settings.trustedProxies);
  serveHealth(instance, app.get(Readiness));
  if (settings.docs) {
    const { serveDocument } = require('./openapi') as typeof documentRoutes;
    serveDocument(app);
  }
  const guard = new BearerGuard(app.get(TokenVerifier), app.get(Reflector));
  return {
    admit: shedLoad(instance, app.get(PlantsRepository, { strict: false })),
    authenticate: (request) => guard.authenticate(request),
  };
}
