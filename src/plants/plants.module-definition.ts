import {
  ConfigurableModuleBuilder,
  Controller,
  Logger,
  type Provider,
  type Type,
  UseGuards,
} from '@nestjs/common';
import {
  BearerGuard,
  createTokenVerifier,
  isAuthConfigured,
  makeToken,
  TokenVerifier,
} from '../auth';
import { ApiErrorResponses } from './dto/error.dto';
import { openRepository } from './persistence';
import { PlantsController } from './plants.controller';
import {
  BODY_LIMIT,
  DEFAULT_BODY_LIMIT,
  GUARDED_BY_HOST,
  MOUNTING_PATH,
  PLANTS_PATH,
  type PlantsModuleMounting,
  type PlantsModuleOptions,
} from './plants.options';
import { PlantsRepository } from './plants.repository';
import { ApiBearerAuth } from './swagger-decorators';

const defaults: PlantsModuleMounting = {
  path: PLANTS_PATH,
  version: undefined,
  hostErrors: [],
  guard: undefined,
  repository: undefined,
  imports: [],
};

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<PlantsModuleOptions>()
    .setClassMethodName('forRoot')
    .setExtras(defaults, ({ imports = [], providers = [], ...definition }, mounting) => ({
      ...definition,
      imports: [...imports, ...mounting.imports],
      controllers: [controllerFor(mounting)],
      providers: [...providers, ...providersFor(mounting)],
    }))
    .build();

/** Creates a controller for each mounting, so that two mountings do not share path and guard. */
function controllerFor(mounting: PlantsModuleMounting): Type<PlantsController> {
  const { path, version, guard } = mounting;
  @Controller({ path, version })
  @ApiErrorResponses(mounting.hostErrors)
  class MountedPlantsController extends PlantsController {}
  // Operation ids of an OpenAPI document come from the name, and must differ.
  Object.defineProperty(MountedPlantsController, 'name', { value: nameOf(path) });

  if (guard !== GUARDED_BY_HOST) UseGuards(guard ?? BearerGuard)(MountedPlantsController);
  if (guard === undefined) ApiBearerAuth('bearerAuth')(MountedPlantsController);
  return MountedPlantsController;
}

/** `greenhouse/plants` has a `GreenhousePlantsController`. */
function nameOf(path: string): string {
  const words = path.match(/[A-Za-z0-9]+/g) ?? [];
  return `${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')}Controller`;
}

function providersFor({ path, repository, guard }: PlantsModuleMounting): Provider[] {
  const inject = [MODULE_OPTIONS_TOKEN];
  const providers: Provider[] = [
    { provide: MOUNTING_PATH, useValue: path },
    { provide: BODY_LIMIT, inject, useFactory: bodyLimitOf },
    repository
      ? { provide: PlantsRepository, useExisting: repository }
      : {
          provide: PlantsRepository,
          // The verifier comes first: invalid options must not leave an open store behind.
          inject: guard ? inject : [...inject, TokenVerifier],
          useFactory: ({ sqlite = 'data/plants.db', postgres }: PlantsModuleOptions) =>
            openRepository(sqlite, postgres),
        },
  ];
  if (guard) return providers;
  return [...providers, { provide: TokenVerifier, inject, useFactory: createDefaultVerifier }];
}

/** @throws TypeError when the limit is not a number of bytes */
function bodyLimitOf({ bodyLimit = DEFAULT_BODY_LIMIT }: PlantsModuleOptions): number {
  if (Number.isSafeInteger(bodyLimit) && bodyLimit > 0) return bodyLimit;
  throw new TypeError('PlantsModule: bodyLimit must be a number of bytes, 1 or more.');
}

/** @throws Error when the options are invalid, or in production when they accept no token */
function createDefaultVerifier({ auth = {} }: PlantsModuleOptions): TokenVerifier {
  if (isAuthConfigured(auth)) return createTokenVerifier(auth);
  if (process.env.NODE_ENV === 'production') {
    throw new Error(
      'PlantsModule: in production (NODE_ENV), set "auth" or "guard" to say who may create plants.',
    );
  }
  const token = makeToken();
  new Logger('PlantsModule').warn(
    `Neither "auth" nor "guard" is set. This token is valid until shutdown: Bearer ${token}`,
  );
  return createTokenVerifier({ ...auth, tokens: [token] });
}
