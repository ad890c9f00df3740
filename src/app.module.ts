import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { BearerGuard, createTokenVerifier, TokenVerifier } from './auth';
import type { Settings } from './config';
import { errorCatalogue, type ErrorKind } from './errors';
import { ErrorFilter } from './http';
import { Metrics, MetricsController } from './operations/metrics';
import { RateLimitGuard } from './operations/limits';
import { Readiness } from './operations/health';
import { Tracing } from './operations/tracing';
import { GUARDED_BY_HOST, PlantsModule } from './plants';

/** The standalone service: the first host of {@link PlantsModule}. */
@Module({
  controllers: [MetricsController],
  providers: [
    Metrics,
    Readiness,
    Tracing,
    { provide: APP_GUARD, useClass: BearerGuard },
    { provide: APP_FILTER, useClass: ErrorFilter },
  ],
})
export class AppModule {
  static register({ database, auth, rateLimit }: Settings): DynamicModule {
    return {
      module: this,
      imports: [
        PlantsModule.forRootAsync({
          guard: GUARDED_BY_HOST,
          // All but the answers to unknown paths and methods, which no operation gives.
          hostErrors: (Object.keys(errorCatalogue) as ErrorKind[]).filter(
            (kind) => ![404, 405].includes(errorCatalogue[kind].status),
          ),
          useFactory: () => database,
        }),
      ],
      providers: [
        { provide: TokenVerifier, useFactory: () => createTokenVerifier(auth) },
        ...(rateLimit
          ? [{ provide: APP_GUARD, useFactory: () => new RateLimitGuard(rateLimit) }]
          : []),
      ],
    };
  }
}
