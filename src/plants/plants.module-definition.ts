import { resolve } from 'node:path';
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
import { findNearMatch, openRepository } from './persistence';
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
import { ApiSecurity } from './swagger-decorators';

const defaults: PlantsModuleMounting = {
  path: PLANTS_PATH,
  version: undefined,
  hostErrors: [],
  guard: undefined,
  securityScheme: undefined,
  repository: undefined,
  imports: [],
};

/** The names of the options, and of those in `auth`. */
const OPTIONS: (keyof PlantsModuleOptions)[] = ['sqlite', 'postgres', 'auth', 'bodyLimit'];
const AUTH = ['tokens', 'tokensFile', 'issuer', 'audience', 'jwksUrl', 'scope'];

/** The injection token of the options of the host, once they are checked. */
const CHECKED_OPTIONS = Symbol('PlantsModule.options');

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, ASYNC_OPTIONS_TYPE } =
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
  // Those of forRoot include the options.
  assertNames(mounting, [...OPTIONS, ...Object.keys(defaults)]);
  const { path, version, guard } = mounting;
  const scheme = mounting.securityScheme ?? (guard === undefined ? 'bearerAuth' : undefined);
  @Controller({ path, version })
  @ApiErrorResponses(mounting.hostErrors)
  class MountedPlantsController extends PlantsController {}
  // Operation ids of an OpenAPI document come from the name, and must differ.
  Object.defineProperty(MountedPlantsController, 'name', { value: nameOf(path) });

  if (guard !== GUARDED_BY_HOST) UseGuards(guard ?? BearerGuard)(MountedPlantsController);
  if (scheme !== undefined) ApiSecurity(scheme)(MountedPlantsController);
  return MountedPlantsController;
}

/** `greenhouse/plants` has a `GreenhousePlantsController`. */
function nameOf(path: string): string {
  const words = path.match(/[A-Za-z0-9]+/g) ?? [];
  return `${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')}Controller`;
}

function providersFor({ path, repository, guard }: PlantsModuleMounting): Provider[] {
  const inject = [CHECKED_OPTIONS];
  const providers: Provider[] = [
    {
      provide: CHECKED_OPTIONS,
      inject: [MODULE_OPTIONS_TOKEN],
      useFactory: (options: PlantsModuleOptions) => {
        checkOptions(options);
        const { sqlite, postgres, auth } = options;
        assertAtMostOne({ sqlite, postgres, repository });
        assertAtMostOne({ auth, guard });
        return options;
      },
    },
    { provide: MOUNTING_PATH, useValue: path },
    { provide: BODY_LIMIT, inject, useFactory: bodyLimitOf },
    repository
      ? { provide: PlantsRepository, useExisting: repository }
      : {
          provide: PlantsRepository,
          // The verifier comes first: invalid options must not leave an open store behind.
          inject: guard ? inject : [...inject, TokenVerifier],
          useFactory: openStore,
        },
  ];
  if (guard) return providers;
  return [...providers, { provide: TokenVerifier, inject, useFactory: createDefaultVerifier }];
}

/** @throws TypeError when an option is undefined or unknown, in `auth` and `postgres` too */
function checkOptions(options: PlantsModuleOptions): void {
  assertNames(options, OPTIONS);
  const { auth = {}, postgres = {} } = assertDefined(options);
  assertNames(auth, AUTH, 'auth.');
  assertDefined(auth, 'auth.');
  if (typeof postgres === 'object') assertDefined(postgres, 'postgres.');
  const tokens: unknown = auth.tokens ?? [];
  if (!Array.isArray(tokens) || !tokens.every((token) => typeof token === 'string')) {
    throw new TypeError('PlantsModule: "auth.tokens" must be an array of strings.');
  }
}

/** @throws TypeError when two options say the same in different ways: one would have no effect */
function assertAtMostOne(options: object): void {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  if (given.length < 2) return;
  const names = given.map(([name]) => `"${name}"`).join(' and ');
  throw new TypeError(`PlantsModule: ${names} exclude each other: leave one out.`);
}

function assertNames(options: object, names: readonly string[], prefix = ''): void {
  const name = Object.keys(options).find((each) => !names.includes(each));
  if (name === undefined) return;
  const near = findNearMatch(name, names);
  const advice = near ? `Did you mean "${near}"?` : `The options are ${names.join(', ')}.`;
  throw new TypeError(`PlantsModule: "${prefix}${name}" is no option here. ${advice}`);
}

/** A variable that is not set would otherwise mean a default: another store, or less protection. */
export function assertDefined<T extends object>(options: T, prefix = ''): T {
  const entries = Object.entries(options) as [string, unknown][];
  const [name] = entries.find(([, value]) => value === undefined || value === null) ?? [];
  if (name === undefined) return options;
  throw new TypeError(`PlantsModule: "${prefix}${name}" is undefined: set it, or leave it out.`);
}

/**
 * @throws Error in production when the options name no store
 * @throws StoreOpenError when the store cannot be used
 */
async function openStore({ sqlite, postgres }: PlantsModuleOptions): Promise<PlantsRepository> {
  if (sqlite === undefined && postgres === undefined) {
    refuseInProduction('"sqlite", "postgres" or "repository" to say where plants are stored');
  }
  const file = sqlite ?? 'data/plants.db';
  const repository = await openRepository(file, postgres);
  if (postgres === undefined) {
    // For PostgreSQL its sessions say so, which know the hosts.
    new Logger('PlantStore').log(`Plants are stored in the SQLite file ${resolve(file)}`);
  }
  return repository;
}

/** @throws Error in production, where nothing important has a default */
function refuseInProduction(missing: string): void {
  if (process.env.NODE_ENV !== 'production') return;
  throw new Error(`PlantsModule: in production (NODE_ENV), set ${missing}.`);
}

/** @throws TypeError when the limit is not a number of bytes */
function bodyLimitOf({ bodyLimit = DEFAULT_BODY_LIMIT }: PlantsModuleOptions): number {
  if (Number.isSafeInteger(bodyLimit) && bodyLimit > 0) return bodyLimit;
  throw new TypeError('PlantsModule: bodyLimit must be a number of bytes, 1 or more.');
}

/** @throws Error when the options are invalid or accept no token, or in production are not given */
function createDefaultVerifier({ auth }: PlantsModuleOptions): TokenVerifier {
  if (auth && !isAuthConfigured(auth)) {
    throw new TypeError(
      'PlantsModule: "auth" accepts no token: it needs "tokens", "tokensFile" or "issuer".',
    );
  }
  if (auth) return createTokenVerifier(auth);
  refuseInProduction('"auth" or "guard" to say who may create plants');
  const token = makeToken();
  new Logger('PlantsModule').warn(
    `Neither "auth" nor "guard" is set. This token is valid until shutdown: Bearer ${token}`,
  );
  return createTokenVerifier({ tokens: [token] });
}
