import type { Duplex } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { type AuthOptions, isAuthConfigured, validateAuthOptions } from './auth/auth.options';
import type { PlantsRepository } from './plants.repository';

/** The injection token of the host's options, validated and with defaults. */
export const PLANTS_OPTIONS = Symbol('PlantsModule.options');
/** The injection token of the body limit in bytes. */
export const BODY_LIMIT = Symbol('PlantsModule.bodyLimit');

/**
 * The options that a factory can return. The application fails to start if an option is undefined or
 * unknown, or if two options conflict.
 */
export interface PlantsModuleOptions {
  /**
   * The path of the SQLite database file, relative to the working directory. The file and its directory
   * are created if they do not exist.
   * @default 'data/plants.db'; none in production (`NODE_ENV`)
   */
  readonly sqlite?: string;
  /**
   * The PostgreSQL database to use instead of SQLite: a connection URL, or client settings of the `pg`
   * driver. Settings can contain a password function, which is called for each new session, a Unix socket
   * as `host`, or an `ssl` object with certificates. They can also contain a URL as `connectionString`;
   * the other settings override it. Both forms name one host. After each connection failure, the settings
   * and the files they name are read again.
   *
   * The module opens and closes its own sessions: one commits, the others read, up to 10 in total. At
   * startup, the table is created if the database has none.
   *
   * Connecting takes at most `connectionTimeoutMillis`, by default 2000. A create request that exceeds
   * `statement_timeout` or `lock_timeout` gets 503 (50300). One that exceeds `query_timeout`, which is at
   * most and by default 8000, gets 504 (50400).
   *
   * @default none: SQLite is used
   */
  readonly postgres?: string | PostgresOptions;
  /**
   * Which bearer tokens are accepted.
   * @default a random token, generated at startup and printed to standard error. In production (`NODE_ENV`)
   * the application fails to start unless `auth` or `guard` is set
   */
  readonly auth?: AuthOptions;
  /**
   * The maximum size of a request body in bytes. The host's own body limits do not apply.
   * @default 1048576
   */
  readonly bodyLimit?: number;
}

/** Client settings of the `pg` driver, declared here so that a host need not install its types. */
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
  /** Milliseconds, like all other times. */
  readonly keepAliveInitialDelayMillis?: number;
  readonly connectionTimeoutMillis?: number;
  readonly statement_timeout?: false | number;
  /** At most 8000. */
  readonly query_timeout?: number;
  readonly lock_timeout?: number;
  readonly idle_in_transaction_session_timeout?: number;
  readonly application_name?: string;
  readonly fallback_application_name?: string;
  readonly client_encoding?: string;
  readonly options?: string;
}

/** The options that `forRootAsync` takes next to `useFactory`, because Nest needs them to wire the module. */
export interface PlantsModuleExtras {
  /**
   * A guard of the host that decides who may create plants, instead of our bearer tokens. `false` if global
   * guards of the host protect the route. Cannot be combined with `auth`.
   * @default bearer tokens
   */
  guard: Type<CanActivate> | false | undefined;
  /**
   * A repository of the host that stores the plants: a provider that one of `imports` exports. Cannot be
   * combined with `sqlite` and `postgres`.
   * @default SQLite or PostgreSQL, according to the other options
   */
  repository: Type<PlantsRepository> | undefined;
  /** Modules that export the dependencies of `guard` and `repository`. */
  imports: NonNullable<ModuleMetadata['imports']>;
  /**
   * Whether every module of the application can inject `PlantsService` and `PlantsRepository` without an
   * import.
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

/** Defaults that the module and the service share. */
export const DEFAULTS = { sqlite: 'data/plants.db', bodyLimit: 2 ** 20 };

/** Whether NODE_ENV is `production`, where store and authentication must be configured explicitly. */
export function isProduction({ NODE_ENV }: NodeJS.ProcessEnv): boolean {
  return NODE_ENV?.trim() === 'production';
}

/** The names of the options. The compiler compares them with the type. */
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
/** The options of Nest itself in `forRootAsync`. */
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
 * Checks what TypeScript cannot check, and rejects values that would silently select something else.
 *
 * @throws TypeError naming the invalid option
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
      'PlantsModule: "auth" does not accept any token: set "tokens", "tokensFile" or "issuer".',
    );
  }
  for (const error of validateAuthOptions(auth)) throw error;
}

/** @throws TypeError when two options conflict: one of them would be ignored */
function assertAtMostOne(options: object): void {
  const present = Object.entries(options).filter(([, value]) => value !== undefined);
  if (present.length < 2) return;
  const names = present.map(([name]) => `"${name}"`).join(' and ');
  throw new TypeError(`PlantsModule: ${names} cannot be combined: set only one of them.`);
}

/**
 * Rejects undefined options, because an unset variable would silently select a default: another store, or
 * weaker protection. Rejects a Promise for the same reason: it has no properties.
 *
 * @throws TypeError when an option is undefined, null or unknown, or if the options are not an object
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
      throw new TypeError(
        `PlantsModule: "${prefix}${name}" is not a known option. The options are ${names.join(', ')}.`,
      );
    }
    if (value === undefined || value === null) {
      throw new TypeError(
        `PlantsModule: "${prefix}${name}" is ${String(value)}: set it, or leave it out.`,
      );
    }
  }
}
