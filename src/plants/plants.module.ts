import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Module,
} from '@nestjs/common';
import { BearerGuard } from './auth/bearer.guard';
import { TokenVerifier } from './auth/token-verifier';
import { PlantsController, ROUTE_GUARD } from './plants.controller';
import {
  BODY_LIMIT,
  checkForRoot,
  checkForRootAsync,
  checkOptions,
  DEFAULT_EXTRAS,
  PLANTS_EXTRAS,
  PLANTS_OPTIONS,
  type PlantsModuleExtras,
  type PlantsModuleOptions,
} from './plants.options';
import { bodyLimitOf, createVerifier, openStore } from './plants.providers';
import { PlantsRepository } from './plants.repository';
import { PlantsService } from './plants.service';

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<PlantsModuleOptions>()
    .setClassMethodName('forRoot')
    .setExtras<PlantsModuleExtras>(DEFAULT_EXTRAS, (definition, extras) => ({
      ...definition,
      imports: [...(definition.imports ?? []), ...extras.imports],
      providers: [
        ...(definition.providers ?? []),
        { provide: PLANTS_EXTRAS, useValue: extras },
        ...(extras.repository
          ? [{ provide: PlantsRepository, useExisting: extras.repository }]
          : []),
        ...(extras.guard
          ? [extras.guard, { provide: ROUTE_GUARD, useExisting: extras.guard }]
          : []),
        ...(extras.guard === false
          ? [{ provide: ROUTE_GUARD, useValue: { canActivate: () => true } }]
          : []),
      ],
    }))
    .build();

/** A host that imports only the class gives no options. */
const OPTIONS_AND_EXTRAS = [{ token: MODULE_OPTIONS_TOKEN, optional: true }, PLANTS_EXTRAS];

/**
 * The feature that a host mounts: `POST /plants` and all it needs. Nothing in it is global; guard,
 * filter and pipe apply to its own route alone.
 *
 * @example
 * ```ts
 * @Module({ imports: [PlantsModule.forRoot({ sqlite: 'data/plants.db', auth: { tokens: ['…'] } })] })
 * export class AppModule {}
 * ```
 */
@Module({
  controllers: [PlantsController],
  providers: [
    { provide: PLANTS_EXTRAS, useValue: DEFAULT_EXTRAS },
    { provide: PLANTS_OPTIONS, inject: OPTIONS_AND_EXTRAS, useFactory: checkOptions },
    { provide: BODY_LIMIT, inject: [PLANTS_OPTIONS], useFactory: bodyLimitOf },
    { provide: TokenVerifier, inject: [PLANTS_OPTIONS, PLANTS_EXTRAS], useFactory: createVerifier },
    { provide: ROUTE_GUARD, useClass: BearerGuard },
    // The verifier comes first: invalid options must not leave an open store behind.
    { provide: PlantsRepository, inject: [PLANTS_OPTIONS, TokenVerifier], useFactory: openStore },
    PlantsService,
  ],
  exports: [PlantsService, PlantsRepository],
})
export class PlantsModule extends ConfigurableModuleClass {
  /**
   * Mounts the module. Outside production every option has a default.
   *
   * @throws TypeError when an option is undefined or unknown, as does the start
   */
  static override forRoot(
    options: PlantsModuleOptions & Partial<PlantsModuleExtras> = {},
  ): DynamicModule {
    return super.forRoot(checkForRoot(options));
  }

  /**
   * Mounts the module with options that a factory makes, for example of the host's configuration.
   * `guard`, `repository` and `imports` stand beside the factory.
   *
   * @example
   * ```ts
   * PlantsModule.forRootAsync({
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ postgres: config.getOrThrow('DATABASE_URL') }),
   * })
   * ```
   * @throws TypeError when there is no factory, or an extra is undefined or unknown
   */
  static override forRootAsync(
    options: ConfigurableModuleAsyncOptions<PlantsModuleOptions> & Partial<PlantsModuleExtras>,
  ): DynamicModule {
    return super.forRootAsync(checkForRootAsync(options));
  }
}
