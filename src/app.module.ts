import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger as PinoLogger } from 'pino';
import { PlantsModule, PlantsRepository } from './plants';
import { BearerGuard, ErrorFilter, TokenVerifier } from './plants/program';
import { logAccess } from './server/watch/access-log';
import { BodyMemory } from './server/admission/body-memory';
import { serveDocument } from './server/document/document.routes';
import type { Settings } from './server/settings/environment';
import { askForBodies } from './server/admission/expect-continue';
import { createFastifyAdapter } from './server/edge/fastify-adapter';
import { Readiness, serveHealth } from './server/watch/health';
import { shedLoad } from './server/admission/load-shedding';
import { createLogger } from './server/watch/logger';
import { Metrics } from './server/watch/metrics';
import { MetricsController } from './server/watch/metrics.controller';
import { NestLogger } from './server/watch/nest-logger';
import { RateLimitGuard } from './server/admission/rate-limit.guard';
import { identifyFailedRequests } from './server/watch/request-context';

/** The standalone service: the first host of {@link PlantsModule}. */
@Module({
  controllers: [MetricsController],
  providers: [
    Metrics,
    Readiness,
    BearerGuard,
    { provide: APP_GUARD, useExisting: BearerGuard },
    { provide: APP_FILTER, useClass: ErrorFilter },
  ],
})
export class AppModule {
  static register({ database, bodyLimit, auth, rateLimit }: Settings): DynamicModule {
    const useFactory = () => ({ ...database, bodyLimit });
    return {
      module: this,
      imports: [PlantsModule.forRootAsync({ guard: false, useFactory })],
      providers: [
        { provide: TokenVerifier, useFactory: () => new TokenVerifier(auth) },
        ...(rateLimit ? [{ provide: APP_GUARD, useValue: new RateLimitGuard(rateLimit) }] : []),
      ],
    };
  }
}

/**
 * Creates the standalone service, ready to listen.
 *
 * @throws StoreOpenError when the store cannot be used
 */
export async function createApplication(settings: Settings): Promise<NestFastifyApplication> {
  const logger = createLogger(settings.logLevel);
  const app = await NestFactory.create<NestFastifyApplication>(
    AppModule.register(settings),
    createFastifyAdapter(settings),
    { bodyParser: false, abortOnError: false, logger: new NestLogger(logger) },
  );
  for (const warning of settings.warnings) new Logger('Environment').warn(warning);
  equip(app, settings, logger);
  return app;
}

/**
 * Adds what operators need: metrics, logs, load shedding, health, the OpenAPI document. Creations are
 * admitted before their bodies are read.
 */
export function equip(app: NestFastifyApplication, settings: Settings, logger: PinoLogger): void {
  const instance = app.getHttpAdapter().getInstance();
  app.get(Metrics).measure(instance);
  identifyFailedRequests();
  if (settings.accessLog) logAccess(instance, logger, settings.trustedProxies);
  serveHealth(instance, app.get(Readiness));
  if (settings.docs) serveDocument(app);
  shedLoad(instance, app.get(PlantsRepository), new BodyMemory(settings.bodyLimit));
  askForBodies(instance, app.get(BearerGuard));
}
