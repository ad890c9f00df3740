import { type DynamicModule, Module } from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import { BearerGuard, createTokenVerifier, TokenVerifier } from './auth';
import type { Settings } from './config/environment';
import { ErrorFilter } from './errors';
import { GUARDED_BY_HOST, PlantsModule } from './plants';

/** The standalone service: the first host of {@link PlantsModule}. */
@Module({
  providers: [
    { provide: APP_GUARD, useClass: BearerGuard },
    { provide: APP_FILTER, useClass: ErrorFilter },
  ],
})
export class AppModule {
  static register({ database, auth }: Settings): DynamicModule {
    return {
      module: AppModule,
      imports: [
        PlantsModule.forRootAsync({
          guard: GUARDED_BY_HOST,
          useFactory: () => database,
        }),
      ],
      providers: [{ provide: TokenVerifier, useFactory: () => createTokenVerifier(auth) }],
    };
  }
}
