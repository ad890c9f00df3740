import { Logger } from '@nestjs/common';
import { type AuthOptions, isAuthConfigured, validateAuthOptions } from './auth/auth.options';
import { generateToken } from './auth/token-list';
import { OptionError } from './errors/operator.error';
import { type StoreLocation, type StoreName, STORES } from './store/stores';
import {
  DEFAULTS,
  type PlantsModuleExtras,
  type PlantsModuleOptions,
  type PostgresOptions,
} from './plants.options';
import { isProduction } from './production';

/** The options of the host, checked and with defaults. */
export interface ResolvedOptions {
  readonly bodyLimit: number;
  /** Unused if a guard of the host protects the route. */
  readonly auth: AuthOptions;
  /** Unused if the host has its own repository. */
  readonly store: StoreLocation;
}

/**
 * Checks the options as the host passes them or its factory returns them, and adds defaults.
 *
 * @throws OptionError when an option is missing or cannot be used
 */
export function resolveOptions(
  options: PlantsModuleOptions,
  { repository, guard }: PlantsModuleExtras,
): ResolvedOptions {
  assertTypes(options, SETTINGS);
  if (options.auth) assertTypes(options.auth, AUTH_TYPES, 'auth.');
  if (isRecord(options.postgres)) assertTypes(options.postgres, POSTGRES_TYPES, 'postgres.');
  const { auth, bodyLimit = DEFAULTS.bodyLimit } = options;
  const names = Object.keys(STORES) as StoreName[];
  const entries = names.map((name) => [name, options[name]] as const);
  const location = Object.fromEntries(entries.filter(([, value]) => value !== undefined));
  assertAtMostOne({ ...location, repository });
  assertAtMostOne({ auth, guard });
  const [error] = auth ? validateAuthOptions(auth) : [];
  if (error) throw error;
  if (auth && !isAuthConfigured(auth)) {
    throw new OptionError('auth', 'auth must have tokens, tokensFile or issuer.');
  }
  const hasDefaultStore = Object.keys(location).length === 0;
  const hasDefaultAuth = auth === undefined && guard === undefined;
  const rule = 'must be set in production (NODE_ENV).';
  if (isProduction(process.env) && hasDefaultStore && !repository) {
    throw new OptionError('sqlite', `${names.join(', ')} or repository ${rule}`);
  }
  if (isProduction(process.env) && hasDefaultAuth) {
    throw new OptionError('auth', `auth or guard ${rule}`);
  }
  return {
    bodyLimit,
    auth: hasDefaultAuth ? createTemporaryAuth() : (auth ?? {}),
    store: (hasDefaultStore ? { sqlite: DEFAULTS.sqlite } : location) as StoreLocation,
  };
}

/** Whether a value is a record of settings. Maps and promises have none, so defaults would apply. */
const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !(Symbol.iterator in value || 'then' in value);
const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== '';

/** Tests of the types in the tables below. Other types are those of `typeof`. */
const TESTS: Readonly<Partial<Record<string, (value: unknown) => boolean>>> = {
  string: isText,
  // A copy, because every() skips the holes of a list.
  'list of strings': (value) =>
    Array.isArray(value) && value.length > 0 && Array.from(value).every(isText),
  list: Array.isArray,
  object: isRecord,
  class: (value) => typeof value === 'function',
  number: Number.isFinite,
  'positive integer': (value) => Number.isSafeInteger(value) && Number(value) > 0,
  false: (value) => value === false,
};

type Types = Readonly<Partial<Record<string, string>>>;
type TypesOf<Options> = Readonly<Record<keyof Options, string>>;
// prettier-ignore
const SETTINGS: TypesOf<PlantsModuleOptions> = {
  sqlite: 'string', postgres: 'string or object or function', auth: 'object', bodyLimit: 'positive integer',
};
const EXTRAS: TypesOf<PlantsModuleExtras> = {
  ...{ guard: 'class or false', repository: 'class', imports: 'list' },
};
// prettier-ignore
const AUTH_TYPES: TypesOf<AuthOptions> = {
  tokens: 'list of strings', tokensFile: 'string', issuer: 'string or list of strings',
  audience: 'string or list of strings', jwksUrl: 'string', scope: 'string',
};
// prettier-ignore
const POSTGRES_TYPES: TypesOf<PostgresOptions> = {
  connectionString: 'string', host: 'string', port: 'number', database: 'string', user: 'string',
  password: 'string or function', ssl: 'boolean or object', sslnegotiation: 'string',
  enableChannelBinding: 'boolean', stream: 'function', keepAlive: 'boolean',
  keepAliveInitialDelayMillis: 'number', connectionTimeoutMillis: 'number',
  statement_timeout: 'number or false', query_timeout: 'number', lock_timeout: 'number',
  idle_in_transaction_session_timeout: 'number', application_name: 'string',
  fallback_application_name: 'string', client_encoding: 'string', options: 'string',
};
/** The types of the options of the two methods that register the module. */
// prettier-ignore
export const METHOD_TYPES = {
  forRoot: { ...SETTINGS, ...EXTRAS },
  forRootAsync: {
    ...EXTRAS, useFactory: 'function', useClass: 'class', useExisting: 'class', inject: 'list',
    provideInjectionTokensFrom: 'list',
  },
};

/**
 * Rejects values of another type, such as undefined, and unknown names: a default would silently replace them, which
 * may be another store or weaker protection.
 *
 * @throws OptionError naming the option
 */
export function assertTypes(options: unknown, types: Types, prefix = ''): void {
  if (!isRecord(options)) throw new OptionError('options', 'The options must be an object.');
  // Not only own names, because the options may be getters of a class.
  for (const name of new Set([...Object.keys(types), ...Object.keys(options)])) {
    if (!(name in options)) continue;
    const option = `${prefix}${name}`;
    const expected = types[name];
    if (expected === undefined) throw new OptionError(option, `${option} is not a known option.`);
    const value = (options as Record<string, unknown>)[name];
    if (expected.split(' or ').some((type) => TESTS[type]?.(value) ?? typeof value === type)) {
      continue;
    }
    const found = value === undefined || value === null ? `, not ${String(value)}` : '';
    throw new OptionError(option, `${option} must have the type ${expected}${found}.`);
  }
}

/** @throws OptionError when two options exclude each other: one of them would be ignored */
function assertAtMostOne(options: object): void {
  const [one, other] = Object.entries(options).filter(([, value]) => value !== undefined);
  if (!one || !other) return;
  throw new OptionError(
    one[0],
    `${one[0]} and ${other[0]} exclude each other: set only one of them.`,
  );
}

/** Prints a temporary token to standard error. It is not logged, because logs may be collected and kept. */
function createTemporaryAuth(): AuthOptions {
  const token = generateToken();
  new Logger('PlantsModule').warn(
    'Neither "auth" nor "guard" is set. A temporary token is printed to standard error.',
  );
  process.stderr.write(`PlantsModule: this token is valid until shutdown: Bearer ${token}\n`);
  return { tokens: [token] };
}
