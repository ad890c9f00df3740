import type { AuthOptions } from '../auth/auth.options';
import { OptionError } from '../errors/operator.error';
import type { PostgresOptions } from '../store/postgres/postgres.options';
import type { PlantsModuleExtras, PlantsModuleOptions } from './plants.options';

/** The type of each option, as {@link typeOf} names it. Several are separated by " or ". */
type Types<Options> = Readonly<Record<keyof Options, string>>;

export const OPTION_TYPES: Types<PlantsModuleOptions> = {
  sqlite: 'string',
  postgres: 'string or object or function',
  auth: 'object',
  bodyLimit: 'number',
};
export const AUTH_TYPES: Types<AuthOptions> = {
  tokens: 'list of strings',
  tokensFile: 'string',
  issuer: 'string or list of strings',
  audience: 'string or list of strings',
  jwksUrl: 'string',
  scope: 'string',
};
export const POSTGRES_TYPES: Types<PostgresOptions> = {
  connectionString: 'string',
  host: 'string',
  port: 'number',
  database: 'string',
  user: 'string',
  password: 'string or function',
  ssl: 'boolean or object',
  sslnegotiation: 'string',
  enableChannelBinding: 'boolean',
  stream: 'function',
  keepAlive: 'boolean',
  keepAliveInitialDelayMillis: 'number',
  connectionTimeoutMillis: 'number',
  statement_timeout: 'number or false',
  query_timeout: 'number',
  lock_timeout: 'number',
  idle_in_transaction_session_timeout: 'number',
  application_name: 'string',
  fallback_application_name: 'string',
  client_encoding: 'string',
  options: 'string',
};
const EXTRA_TYPES: Types<PlantsModuleExtras> = {
  guard: 'function or false',
  repository: 'function',
  imports: 'list',
};
export const FOR_ROOT_TYPES = { ...OPTION_TYPES, ...EXTRA_TYPES };
export const FOR_ROOT_ASYNC_TYPES = {
  ...EXTRA_TYPES,
  useFactory: 'function',
  useClass: 'function',
  useExisting: 'function',
  inject: 'list',
  provideInjectionTokensFrom: 'list',
};

/**
 * Rejects values of another type, and unknown names. TypeScript does not see them in the result of a factory, or behind
 * a `!`. They would admit "Bearer undefined", or a default would replace them: another store, or weaker protection.
 * @param prefix the name of the option that contains the options, such as `auth.`
 * @throws OptionError naming the option
 */
export function assertTypes(
  options: unknown,
  types: Readonly<Partial<Record<string, string>>>,
  prefix = '',
): void {
  if (typeOf(options) !== 'object') {
    throw new OptionError('options', 'The options must be an object.');
  }
  // Not only own names, because the options may be getters of a class.
  const names = new Set([...Object.keys(types), ...Object.keys(options as object)]);
  for (const name of names) {
    if (!(name in (options as object))) continue;
    const option = prefix + name;
    const expected = types[name];
    if (!expected) throw new OptionError(option, `${option} is not a known option.`);
    const value = (options as Record<string, unknown>)[name];
    const found = typeOf(value);
    // Every list of strings is a list.
    const isOfType = (type: string) =>
      found.startsWith(type) || (type === 'false' && value === false);
    if (expected.split(' or ').some(isOfType)) continue;
    throw new OptionError(option, `${option} must be: ${expected}. It is: ${found}.`);
  }
}

/** Names the type of a value. An object of another class, such as a promise, is not an `object`. */
function typeOf(value: unknown): string {
  if (typeof value === 'string') return value.trim() === '' ? 'empty string' : 'string';
  if (typeof value === 'function') return 'function';
  if (Number.isNaN(value)) return 'NaN';
  if (!Array.isArray(value)) {
    return Object.prototype.toString.call(value).slice('[object '.length, -1).toLowerCase();
  }
  // A copy, because every() skips the holes of a list.
  const isOfStrings = Array.from(value).every((each) => typeOf(each) === 'string');
  return value.length > 0 && isOfStrings ? 'list of strings' : 'list';
}
