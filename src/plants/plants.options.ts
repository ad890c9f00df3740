import type { Duplex } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { type AuthOptions, isAuthConfigured, validateAuthOptions } from './auth/auth.options';
import { describeFault } from './errors/operator.error';
import { findNearMatch } from './near-match';
import type { PlantsRepository } from './plants.repository';

/** The injection token of the options of the host, checked and with their defaults. */
export const PLANTS_OPTIONS = Symbol('PlantsModule.options');
/** The injection token of the largest body, in bytes. */
export const BODY_LIMIT = Symbol('PlantsModule.bodyLimit');

/**
 * The options that a factory may provide. Startup fails if one is undefined or unknown, or if two exclude
 * each other.
 */
export interface PlantsModuleOptions {
  /**
   * The file of the SQLite database, relative to the working directory. It and its directory are
   * created when missing.
   * @default 'data/plants.db'; in production (`NODE_ENV`) none
   */
  readonly sqlite?: string;
  /**
   * A PostgreSQL database to store plants in instead, without `sqlite`: a connection URL, or client settings of the
   * `pg` driver, for example with a password function, which is called for each new session, a Unix
   * socket as `host`, or an `ssl` object with certificates. `connectionString` may be a URL as above;
   * settings beside it win over it. Both name one host. They are read again after each fault, with the
   * files that they name.
   *
   * The module opens its own sessions and closes them: one commits, further ones read, up to 10 in all.
   * A start creates the table in a database that has none.
   *
   * Connecting takes at most `connectionTimeoutMillis`, by default 2000. A creation that outlasts
   * `statement_timeout` or `lock_timeout` is answered 50300, one that outlasts `query_timeout`, by
   * default and at most 8000, is answered 50400.
   *
   * @default none, which means SQLite
   */
  readonly postgres?: string | PostgresOptions;
  /**
   * Which bearer tokens are accepted.
   * @default a random token, created at startup and printed once to standard error; in production (`NODE_ENV`) the host
   * does not start unless `auth` or `guard` says who may create plants
   */
  readonly auth?: AuthOptions;
  /**
   * The largest body of a request, in bytes. Limits of the host do not count.
   * @default 1048576
   */
  readonly bodyLimit?: number;
}

/** Client settings of the `pg` driver, whose types a host need not have installed. */
export interface PostgresOptions {
  readonly connectionString?: string;
  readonly host?: string;
  readonly port?: number;
  readonly database?: string;
  readonly user?: string;
  readonly password?: string | (() => string | Promise<string>);
  readonly ssl?: boolean | ConnectionOptions;
  readonly sslnegotiation?: 'postgres' | 'direct';
  readonly enableChannelBinding?: boolean;
  readonly stream?: () => Duplex | undefined;
  readonly keepAlive?: boolean;
  /** Milliseconds, as are the other times. */
  readonly keepAliveInitialDelayMillis?: number;
  readonly connectionTimeoutMillis?: number;
  readonly statement_timeout?: false | number;
  /** 8000 at most. */
  readonly query_timeout?: number;
  readonly lock_timeout?: number;
  readonly idle_in_transaction_session_timeout?: number;
  readonly application_name?: string;
  readonly fallback_application_name?: string;
  readonly client_encoding?: string;
  readonly options?: string;
}

/** The options that stand beside `useFactory` in `forRootAsync`, because Nest needs them to wire the module. */
export interface PlantsModuleExtras {
  /**
   * A guard of the host that decides who may create plants, instead of our bearer tokens; or `false`
   * when global guards of the host protect the route. It excludes `auth`.
   * @default bearer tokens
   */
  guard: Type<CanActivate> | false | undefined;
  /**
   * A store of the host instead of ours: a provider that one of `imports` exports. It
   * excludes `sqlite` and `postgres`.
   * @default SQLite or PostgreSQL, as the options say
   */
  repository: Type<PlantsRepository> | undefined;
  /** Modules that export what `guard` and `repository` inject. */
  imports: NonNullable<ModuleMetadata['imports']>;
  /**
   * Whether every module of the host may inject `PlantsService` and `PlantsRepository` without an import.
   * @default false
   */
  isGlobal: boolean;
}

export const DEFAULT_EXTRAS: PlantsModuleExtras = {
  guard: undefined,
  repository: undefined,
  imports: [],
  isGlobal: false,
};

/** The defaults of options that the service has too. */
export const DEFAULTS = { sqlite: 'data/plants.db', bodyLimit: 2 ** 20 };

/** Whether nothing important may have a default. */
export function isProduction({ NODE_ENV }: NodeJS.ProcessEnv): boolean {
  return NODE_ENV?.trim() === 'production';
}

/** The names of options, which the compiler compares with their types. */
const OPTIONS = Object.keys({
  sqlite: true,
  postgres: true,
  auth: true,
  bodyLimit: true,
} satisfies Record<keyof PlantsModuleOptions, true>);
const EXTRAS = Object.keys(DEFAULT_EXTRAS);
const POSTGRES_OPTIONS = Object.keys({
  connectionString: true,
  host: true,
  port: true,
  database: true,
  user: true,
  password: true,
  ssl: true,
  sslnegotiation: true,
  enableChannelBinding: true,
  stream: true,
  keepAlive: true,
  keepAliveInitialDelayMillis: true,
  connectionTimeoutMillis: true,
  statement_timeout: true,
  query_timeout: true,
  lock_timeout: true,
  idle_in_transaction_session_timeout: true,
  application_name: true,
  fallback_application_name: true,
  client_encoding: true,
  options: true,
} satisfies Record<keyof PostgresOptions, true>);
const AUTH_OPTIONS = Object.keys({
  tokens: true,
  tokensFile: true,
  issuer: true,
  audience: true,
  jwksUrl: true,
  scope: true,
} satisfies Record<keyof AuthOptions, true>);
/** Those of Nest in `forRootAsync`. */
const FACTORY_OPTIONS = [
  ...['useFactory', 'useClass', 'useExisting'],
  ...['inject', 'provideInjectionTokensFrom'],
];

/** @throws TypeError when the options of `forRoot` are not an object, or one is undefined or unknown */
export function checkForRoot<T extends object>(options: T): T {
  assertNames(options, [...OPTIONS, ...EXTRAS]);
  return options;
}

/** @throws TypeError when an option of `forRootAsync` is undefined or unknown */
export function checkForRootAsync<T extends object>(options: T): T {
  assertNames(options, [...FACTORY_OPTIONS, ...EXTRAS]);
  return options;
}

/**
 * Checks what TypeScript does not, and what would silently do something else.
 *
 * @throws TypeError saying which of the options is wrong
 */
export function checkOptions(
  options: PlantsModuleOptions,
  { repository, guard }: PlantsModuleExtras,
): PlantsModuleOptions {
  assertNames(options, OPTIONS);
  const { sqlite, postgres, auth, bodyLimit = 1 } = options;
  if (auth !== undefined) checkAuth(auth);
  if (postgres !== undefined && typeof postgres !== 'string') {
    assertNames(postgres, POSTGRES_OPTIONS, 'postgres.');
  }
  assertAtMostOne({ sqlite, postgres, repository });
  assertAtMostOne({ auth, guard });
  if (!Number.isSafeInteger(bodyLimit) || bodyLimit < 1) {
    throw new TypeError('PlantsModule: "bodyLimit" must be a number of bytes, 1 or more.');
  }
  return options;
}

function checkAuth(auth: AuthOptions): void {
  assertNames(auth, AUTH_OPTIONS, 'auth.');
  if (!isAuthConfigured(auth)) {
    throw new TypeError(
      'PlantsModule: "auth" accepts no token: it needs "tokens", "tokensFile" or "issuer".',
    );
  }
  const faults = validateAuthOptions(auth);
  if (faults.length === 0) return;
  throw new TypeError(`PlantsModule: ${faults.map((fault) => describeFault(fault)).join('; ')}.`);
}

/** @throws TypeError when two options say the same in different ways: one would have no effect */
function assertAtMostOne(options: object): void {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  if (given.length < 2) return;
  const names = given.map(([name]) => `"${name}"`).join(' and ');
  throw new TypeError(`PlantsModule: ${names} exclude each other: leave one out.`);
}

/**
 * An undefined option would mean a default: another store, or less protection. So would a value without
 * properties, such as a Promise.
 *
 * @throws TypeError when an option is undefined, null or unknown, or when there is no object of options
 */
function assertNames(options: unknown, names: readonly string[], prefix = ''): void {
  if (typeof options !== 'object' || options === null || options instanceof Promise) {
    const what = prefix === '' ? 'the options' : `"${prefix.slice(0, -1)}"`;
    const found =
      options instanceof Promise ? 'a Promise: use forRootAsync({ useFactory })' : typeof options;
    throw new TypeError(`PlantsModule: ${what} must be an object (this is ${found}).`);
  }
  for (const [name, value] of Object.entries(options) as [string, unknown][]) {
    if (!names.includes(name)) {
      const near = findNearMatch(name, names);
      const advice = near ? `Did you mean "${near}"?` : `The options are ${names.join(', ')}.`;
      throw new TypeError(`PlantsModule: "${prefix}${name}" is not a known option. ${advice}`);
    }
    if (value === undefined || value === null) {
      throw new TypeError(
        `PlantsModule: "${prefix}${name}" is ${String(value)}: set it, or leave it out.`,
      );
    }
  }
}
