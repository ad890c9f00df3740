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
    global: extras.isGlobal,
    imports: [...(definition.imports ?? []), ...extras.imports],
    controllers: [PlantsController],
    providers: [
      ...(definition.providers ?? []),
      {
        provide: PLANTS_OPTIONS,
        inject: [GIVEN_OPTIONS, HttpAdapterHost],
        useFactory: (options: PlantsModuleOptions, host: HttpAdapterHost) => {
          assertMountedOnce(host);
          return resolveOptions(options, extras);
        },
      },
      {
        provide: BODY_LIMIT,
        inject: [PLANTS_OPTIONS],
        useFactory: ({ bodyLimit }: ResolvedOptions) => bodyLimit,
      },
      BodyMemory,
      ...guardOf(extras),
      storeOf(extras),
    ],
    exports: [PlantsRepository],
  }))
  .build();

/** The applications that have mounted the module: each has one host of its adapter, also without HTTP. */
const applications = new WeakSet<HttpAdapterHost>();

/** @throws TypeError when the application imports the module from two calls, which would open two stores */
function assertMountedOnce(host: HttpAdapterHost): void {
  if (applications.has(host))
    throw new TypeError(`PlantsModule: it is mounted twice. ${MOUNT_ONCE}`);
  applications.add(host);
}

const MOUNT_ONCE =
  'Write "export const plants = PlantsModule.forRoot({ … })" in one file, and "imports: [plants]" in each module that needs it.';

/** @throws TypeError when the host has imported the class alone, which has no store */
function createService(plants?: PlantsRepository): PlantsService {
  if (plants) return new PlantsService(plants);
  throw new TypeError(`PlantsModule: there are no options. ${MOUNT_ONCE}`);
}

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
 * The feature that a host mounts, once: `POST /plants` and all it needs. Guard, filter and pipe apply to
 * its own route alone. Modules that need {@link PlantsService} import what the one call returned, or
 * nothing with `isGlobal`.
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
   * `guard`, `repository`, `imports` and `isGlobal` stand beside the factory.
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
