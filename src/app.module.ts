import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD, NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { BearerGuard } from './plants/auth/bearer.guard';
import { TokenVerifier } from './plants/auth/token-verifier';
import { PlantsModule } from './plants/plants.module';
import { ContinueGuard } from './server/admission/continue.guard';
import { LoadSheddingGuard } from './server/admission/load-shedding.guard';
import { RateLimitGuard } from './server/admission/rate-limit.guard';
import { serveDocument } from './server/document/document.routes';
import { createFastifyAdapter } from './server/edge/fastify-adapter';
import { ServiceErrorFilter } from './server/edge/service-error.filter';
import type { Settings } from './server/settings/environment';
import { logAccess } from './server/watch/access-log';
import { Readiness, serveHealth } from './server/watch/health';
import { createLogger } from './server/watch/logger';
import { Metrics } from './server/watch/metrics';
import { MetricsController } from './server/watch/metrics.controller';
import { Responses } from './server/watch/responses';
import { NestLogger } from './server/watch/nest-logger';
import { logRejectedCredentials } from './server/watch/rejected-credentials';

/**
 * The standalone service: the first host of {@link PlantsModule}.
 *
 * A request is first validated in `server/edge`. Then it passes the guards in the order listed below, and
 * the pipe of the module, which reads the body. The filter of the module responds to its errors, and the
 * filter below to all others.
 */
@Module({})
export class AppModule {
  static register(
    { database, bodyLimit, auth, rateLimit }: Settings,
    responses = new Responses(),
  ): DynamicModule {
    const useFactory = () => ({ ...database, bodyLimit });
    return {
      module: this,
      imports: [PlantsModule.forRootAsync({ guard: false, useFactory })],
      controllers: [MetricsController],
      providers: [
        { provide: Responses, useValue: responses },
        Metrics,
        Readiness,
        { provide: TokenVerifier, useFactory: () => new TokenVerifier(auth) },
        { provide: APP_GUARD, useClass: LoadSheddingGuard },
        { provide: APP_GUARD, useClass: BearerGuard },
        ...(rateLimit ? [{ provide: APP_GUARD, useValue: new RateLimitGuard(rateLimit) }] : []),
        { provide: APP_GUARD, useValue: new ContinueGuard(bodyLimit) },
        { provide: APP_FILTER, useClass: ServiceErrorFilter },
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
  const responses = new Responses();
  const app = await NestFactory.create<NestFastifyApplication>(
    AppModule.register(settings, responses),
    createFastifyAdapter(settings, responses),
    { bodyParser: false, abortOnError: false, logger: new NestLogger(logger) },
  );
  for (const warning of settings.warnings) new Logger('Environment').warn(warning);
  const instance = app.getHttpAdapter().getInstance();
  responses.observe(instance);
  app.get(Metrics).measure(instance);
  if (settings.tls) app.get(Metrics).watchCertificate(settings.tls.certificate);
  logRejectedCredentials(responses, settings.trustedProxies);
  if (settings.accessLog) logAccess(instance, responses, logger, settings.trustedProxies);
  serveHealth(instance, app.get(Readiness));
  if (settings.docs) serveDocument(app, settings.host);
  return app;
}
