import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Inject,
  Module,
  Optional,
  type Provider,
} from '@nestjs/common';
import { BearerGuard } from './auth/bearer.guard';
import { TokenVerifier } from './auth/token-verifier';
import { BodyMemory } from './host/body-memory';
import { PlantsController, ROUTE_GUARD } from './plants.controller';
import {
  BODY_LIMIT,
  checkForRoot,
  checkForRootAsync,
  DEFAULT_EXTRAS,
  PLANTS_OPTIONS,
  type PlantsModuleExtras,
  type PlantsModuleOptions,
} from './plants.options';
import {
  createVerifier,
  openStore,
  type ResolvedOptions,
  resolveOptions,
} from './plants.providers';
import { PlantsRepository } from './plants.repository';
import { PlantsService } from './plants.service';

/** The injection token of the options as the host or its factory gives them. */
const GIVEN_OPTIONS = Symbol('PlantsModule.givenOptions');

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<PlantsModuleOptions>({
  optionsInjectionToken: GIVEN_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setExtras<PlantsModuleExtras>(DEFAULT_EXTRAS, (definition, extras) => ({
    ...definition,
    imports: [...(definition.imports ?? []), ...extras.imports],
    controllers: [PlantsController],
    providers: [
      ...(definition.providers ?? []),
      {
        provide: PLANTS_OPTIONS,
        inject: [GIVEN_OPTIONS],
        useFactory: (options: unknown) => resolveOptions(options, extras),
      },
      {
        provide: BODY_LIMIT,
        inject: [PLANTS_OPTIONS],
        useFactory: ({ bodyLimit }: ResolvedOptions) => bodyLimit,
      },
      BodyMemory,
      ...guardOf(extras),
      storeOf(extras),
      PlantsService,
    ],
    exports: [PlantsService, PlantsRepository],
  }))
  .build();

/** What decides who may create plants: bearer tokens, a guard of the host, or nothing here. */
function guardOf({ guard }: PlantsModuleExtras): Provider[] {
  if (guard === false) return [{ provide: ROUTE_GUARD, useValue: { canActivate: () => true } }];
  if (guard) return [guard, { provide: ROUTE_GUARD, useExisting: guard }];
  return [
    { provide: TokenVerifier, inject: [PLANTS_OPTIONS], useFactory: createVerifier },
    { provide: ROUTE_GUARD, useClass: BearerGuard },
  ];
}

/** Where plants are stored: in a repository of the host, or in SQLite or PostgreSQL. */
function storeOf({ repository }: PlantsModuleExtras): Provider {
  if (repository) return { provide: PlantsRepository, useExisting: repository };
  return { provide: PlantsRepository, inject: [PLANTS_OPTIONS], useFactory: openStore };
}

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
@Module({})
export class PlantsModule extends ConfigurableModuleClass {
  /** @throws TypeError when the host has imported the class alone, without options */
  constructor(@Optional() @Inject(PLANTS_OPTIONS) options?: ResolvedOptions) {
    super();
    if (options !== undefined) return;
    throw new TypeError(
      'PlantsModule: there are no options. Import PlantsModule.forRoot(), not PlantsModule alone.',
    );
  }

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
