import {
  type ConfigurableModuleAsyncOptions,
  ConfigurableModuleBuilder,
  type DynamicModule,
  Module,
  type OnModuleInit,
  type Provider,
  Scope,
} from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { BearerGuard } from './auth/bearer.guard';
import { TokenVerifier } from './auth/token-verifier';
import { OptionError } from './errors/operator.error';
import { FailureLog } from './http/failure-log';
import { assertNames, FOR_ROOT_ASYNC_NAMES, FOR_ROOT_NAMES } from './options/option-names';
import { openRepository } from './store/stores';
import { PlantsController, protectWith } from './plants.controller';
import {
  PLANTS_OPTIONS,
  type PlantsModuleExtras,
  type PlantsModuleOptions,
} from './options/plants.options';
import { PlantsRepository } from './plants.repository';
import { PlantsService } from './plants.service';
import { type ResolvedOptions, resolveOptions } from './options/resolve-options';

/** The injection token of the options as the host passes them or its factory returns them. */
const RAW_OPTIONS = Symbol('PlantsModule.rawOptions');

const DEFAULT_EXTRAS: PlantsModuleExtras = { guard: undefined, repository: undefined, imports: [] };

/** Only for our own guard: a verifier watches files, and fetches keys. */
const VERIFIER: Provider = {
  provide: TokenVerifier,
  inject: [PLANTS_OPTIONS],
  useFactory: ({ auth }: ResolvedOptions) => new TokenVerifier(auth),
};

const STORE: Provider = {
  provide: PlantsRepository,
  inject: [PLANTS_OPTIONS],
  useFactory: ({ store }: ResolvedOptions) => openRepository(store),
};

const { ConfigurableModuleClass } = new ConfigurableModuleBuilder<PlantsModuleOptions>({
  optionsInjectionToken: RAW_OPTIONS,
})
  .setClassMethodName('forRoot')
  .setExtras(DEFAULT_EXTRAS, (definition, extras) => {
    const { guard = BearerGuard, repository, imports } = extras;
    return {
      ...definition,
      imports: [...(definition.imports ?? []), ...imports],
      controllers: [guard === false ? PlantsController : protectWith(guard)],
      providers: [
        ...(definition.providers ?? []),
        {
          provide: PLANTS_OPTIONS,
          inject: [RAW_OPTIONS],
          useFactory: (options: PlantsModuleOptions) => resolveOptions(options, extras),
        },
        repository ? { provide: PlantsRepository, useExisting: repository } : STORE,
        ...(guard === BearerGuard ? [VERIFIER] : []),
      ],
      exports: [PlantsRepository],
    };
  })
  .build();

/**
 * Adds `POST /plants` to an application. Call `forRoot` or `forRootAsync` once, because each call opens a store, and
 * import its result wherever you need {@link PlantsService}.
 *
 * @example
 * ```ts
 * @Module({ imports: [PlantsModule.forRoot({ sqlite: 'data/plants.db', auth: { tokens: ['…'] } })] })
 * export class AppModule {}
 * // In main.ts. Without rawBody, ids above 2^53 are rejected.
 * const app = await NestFactory.create(AppModule, { rawBody: true });
 * ```
 */
@Module({ providers: [PlantsService, FailureLog], exports: [PlantsService, FailureLog] })
export class PlantsModule extends ConfigurableModuleClass implements OnModuleInit {
  constructor(private readonly moduleRef: ModuleRef) {
    super();
  }

  /**
   * Registers the module. Outside production every option has a default.
   * @throws OptionError when an option is unknown or undefined. The other checks run at startup.
   */
  static override forRoot(
    options: PlantsModuleOptions & Partial<PlantsModuleExtras> = {},
  ): DynamicModule {
    assertNames(options, FOR_ROOT_NAMES);
    return super.forRoot(options);
  }

  /**
   * Registers the module with options that a factory returns, for example from the host's configuration. Pass `guard`,
   * `repository` and `imports` next to the factory.
   * @example
   * ```ts
   * PlantsModule.forRootAsync({
   *   inject: [ConfigService],
   *   useFactory: (config: ConfigService) => ({ postgres: config.getOrThrow('DATABASE_URL') }),
   * })
   * ```
   * @throws OptionError when an option next to the factory is unknown or undefined
   */
  static override forRootAsync(
    options: ConfigurableModuleAsyncOptions<PlantsModuleOptions> & Partial<PlantsModuleExtras>,
  ): DynamicModule {
    assertNames(options, FOR_ROOT_ASYNC_NAMES);
    if (!options.useFactory && !options.useClass && !options.useExisting) {
      throw new OptionError('useFactory', 'useFactory must be set: forRootAsync has no defaults.');
    }
    return super.forRootAsync(options);
  }

  /** @throws OptionError when the options would be created for each request, and a store with them */
  onModuleInit(): void {
    if (this.moduleRef.introspect(PLANTS_OPTIONS).scope !== Scope.REQUEST) return;
    throw new OptionError(
      'options',
      'The options must not come from a request-scoped provider: each request would open a store.',
    );
  }
}
