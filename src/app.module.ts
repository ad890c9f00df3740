import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { BearerGuard } from './plants/auth/bearer.guard';
import { TokenVerifier } from './plants/auth/token-verifier';
import { PlantsModule } from './plants/plants.module';
import { PlantsRepository } from './plants/plants.repository';
import { BodyGuard } from './server/guards/body.guard';
import { LoadSheddingGuard } from './server/guards/load-shedding.guard';
import { RateLimitGuard } from './server/guards/rate-limit.guard';
import { serveDocument } from './server/openapi/document.routes';
import { createFastifyAdapter } from './server/http/fastify-adapter';
import { ServiceErrorFilter } from './server/http/service-error.filter';
import type { Settings } from './server/settings/environment';
import { Readiness, serveHealth } from './server/monitoring/health';
import { createLogger } from './server/monitoring/logger';
import { Metrics, MetricsController } from './server/monitoring/metrics';
import { NestLogger } from './server/monitoring/nest-logger';
import { Recorder } from './server/monitoring/recorder';

/**
 * The standalone service, a host of {@link PlantsModule}. A request passes the hooks of `server/http/fastify-adapter`,
 * then the guards in the order below, and the pipe of the module. The filter below responds to errors of other routes.
 */
@Module({})
export class AppModule {
  /** @param metrics created before the module, because the adapter already counts the errors of the HTTP parser */
  static register(settings: Settings, metrics: Metrics): DynamicModule {
    const { database, bodyLimit, auth, rateLimit } = settings;
    return {
      module: this,
      imports: [PlantsModule.forRoot({ guard: false, bodyLimit, ...database })],
      controllers: [MetricsController],
      providers: [
        { provide: Metrics, useValue: metrics },
        Readiness,
        { provide: TokenVerifier, useFactory: () => new TokenVerifier(auth) },
        { provide: APP_GUARD, useClass: LoadSheddingGuard },
        { provide: APP_GUARD, useClass: BearerGuard },
        ...(rateLimit ? [{ provide: APP_GUARD, useValue: new RateLimitGuard(rateLimit) }] : []),
        { provide: APP_GUARD, useValue: new BodyGuard(bodyLimit) },
        { provide: APP_FILTER, useClass: ServiceErrorFilter },
      ],
    };
  }
}

/**
 * Creates the standalone service, ready to listen.
 * @throws OptionError when the store cannot be used
 * @throws OperatorError when the certificate or its key cannot be used
 */
export async function createApplication(settings: Settings): Promise<NestFastifyApplication> {
  const logger = createLogger(settings.logLevel);
  const metrics = new Metrics();
  const recorder = new Recorder(metrics, logger, settings);
  const nestLogger = new NestLogger(logger);
  // The adapter logs, for example that a certificate has expired.
  Logger.overrideLogger(nestLogger);
  const app = await NestFactory.create<NestFastifyApplication>(
    AppModule.register(settings, metrics),
    createFastifyAdapter(settings, recorder),
    // `BodyGuard` reads bodies. Errors are thrown, so that `main.ts` prints them in one sentence.
    { bodyParser: false, abortOnError: false, logger: nestLogger },
  );
  const instance = app.getHttpAdapter().getInstance();
  metrics.observe(instance, app.get(PlantsRepository), app.get(TokenVerifier));
  serveHealth(instance, app.get(Readiness));
  if (settings.docs) serveDocument(app);
  return app;
}
