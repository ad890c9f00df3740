import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Module,
  type Provider,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
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
  createRepository,
  type ResolvedOptions,
  resolveOptions,
} from './plants.providers';
import { PlantsRepository } from './plants.repository';
import { PlantsService } from './plants.service';

/** The injection token of the options exactly as the host passes them or its factory returns them. */
const RAW_OPTIONS = Symbol('PlantsModule.rawOptions');

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<PlantsModuleOptions>({
  optionsInjectionToken: RAW_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setExtras<PlantsModuleExtras>(DEFAULT_EXTRAS, (definition, extras) => ({
    ...definition,
    global: extras.isGlobal,
    imports: [...(definition.imports ?? []), ...extras.imports],
    controllers: [PlantsController],
    providers: [
      ...(definition.providers ?? []),
      {
        provide: PLANTS_OPTIONS,
        inject: [RAW_OPTIONS, HttpAdapterHost],
        useFactory: (options: PlantsModuleOptions, host: HttpAdapterHost) => {
          assertRegisteredOnce(host);
          return resolveOptions(options, extras);
        },
      },
      {
        provide: BODY_LIMIT,
        inject: [PLANTS_OPTIONS],
        useFactory: ({ bodyLimit }: ResolvedOptions) => bodyLimit,
      },
      BodyMemory,
      ...createGuardProviders(extras),
      createRepositoryProvider(extras),
    ],
    exports: [PlantsRepository],
  }))
  .build();

/** Applications that use the module. Each has exactly one HttpAdapterHost, even without HTTP. */
const applications = new WeakSet<HttpAdapterHost>();

/** @throws TypeError when the application calls `forRoot` twice, which would open two stores */
function assertRegisteredOnce(host: HttpAdapterHost): void {
  if (applications.has(host)) {
    throw new TypeError(
      `PlantsModule: it was registered twice in one application. ${HOW_TO_REGISTER}`,
    );
  }
  applications.add(host);
}

const HOW_TO_REGISTER =
  'Write "export const plants = PlantsModule.forRoot({ … })" in one file, and "imports: [plants]" in each module that needs it.';

/** @throws TypeError when the host imports the class without options, so that there is no store */
function createService(plants?: PlantsRepository): PlantsService {
  if (plants) return new PlantsService(plants);
  throw new TypeError(
    `PlantsModule: it was imported without forRoot() or forRootAsync(). ${HOW_TO_REGISTER}`,
  );
}

/** Providers for the route guard: bearer tokens, the host's guard, or none. */
function createGuardProviders({ guard }: PlantsModuleExtras): Provider[] {
  if (guard === false) return [{ provide: ROUTE_GUARD, useValue: { canActivate: () => true } }];
  if (guard) return [guard, { provide: ROUTE_GUARD, useExisting: guard }];
  return [
    { provide: TokenVerifier, inject: [PLANTS_OPTIONS], useFactory: createVerifier },
    { provide: ROUTE_GUARD, useClass: BearerGuard },
  ];
}

/** The provider of the store: the host's repository, SQLite or PostgreSQL. */
function createRepositoryProvider({ repository }: PlantsModuleExtras): Provider {
  if (repository) return { provide: PlantsRepository, useExisting: repository };
  return { provide: PlantsRepository, inject: [PLANTS_OPTIONS], useFactory: createRepository };
}

/**
 * Adds `POST /plants` to an application. Its guard, filter and pipe apply only to this route. Call
 * `forRoot` or `forRootAsync` once. Modules that need {@link PlantsService} import the module returned by
 * that one call, or nothing if `isGlobal` is set.
 *
 * @example
 * ```ts
 * @Module({ imports: [PlantsModule.forRoot({ sqlite: 'data/plants.db', auth: { tokens: ['…'] } })] })
 * export class AppModule {}
 * ```
 */
@Module({
  providers: [
    {
      provide: PlantsService,
      inject: [{ token: PlantsRepository, optional: true }],
      useFactory: createService,
    },
  ],
  exports: [PlantsService],
})
export class PlantsModule extends ConfigurableModuleClass {
  /**
   * Registers the module. Outside production every option has a default.
   *
   * @throws TypeError when an option is undefined or unknown. The other checks run at startup.
   */
  static override forRoot(
    options: PlantsModuleOptions & Partial<PlantsModuleExtras> = {},
  ): DynamicModule {
    return super.forRoot(checkForRoot(options));
  }

  /**
   * Registers the module with options that a factory returns, for example from the host's configuration.
   * Pass `guard`, `repository`, `imports` and `isGlobal` next to the factory.
   *
   * @example
   * ```ts
   * PlantsModule.forRootAsync({
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ postgres: config.getOrThrow('DATABASE_URL') }),
   * })
   * ```
   * @throws TypeError when there is no factory, or when an option next to it is undefined or unknown
   */
  static override forRootAsync(
    options: ConfigurableModuleAsyncOptions<PlantsModuleOptions> & Partial<PlantsModuleExtras>,
  ): DynamicModule {
    return super.forRootAsync(checkForRootAsync(options));
  }
}
