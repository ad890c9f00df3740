import type { AuthOptions } from '../auth/auth.options';
import { OptionError } from '../errors/operator.error';
import type { PostgresOptions } from '../store/postgres/postgres.options';
import type { PlantsModuleExtras, PlantsModuleOptions } from './plants.options';

/** The names of all options of a type. TypeScript reports a name that is missing or unknown. */
type Names<Options> = Readonly<Record<keyof Options, true>>;

/** The options that a factory can return. */
export const OPTION_NAMES: Names<PlantsModuleOptions> = {
  sqlite: true,
  postgres: true,
  auth: true,
  bodyLimit: true,
};
/** The options in `auth`. */
export const AUTH_NAMES: Names<AuthOptions> = {
  tokens: true,
  tokensFile: true,
  issuer: true,
  audience: true,
  jwksUrl: true,
  scope: true,
};
/** The options in `postgres`, if it is an object. */
export const POSTGRES_NAMES: Names<PostgresOptions> = {
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
};
const EXTRA_NAMES: Names<PlantsModuleExtras> = {
  guard: true,
  repository: true,
  imports: true,
};
/** The options of `forRoot`. */
export const FOR_ROOT_NAMES = { ...OPTION_NAMES, ...EXTRA_NAMES };
/** The options of `forRootAsync`: those of Nest, and what cannot come from a factory. */
export const FOR_ROOT_ASYNC_NAMES = {
  ...EXTRA_NAMES,
  useFactory: true,
  useClass: true,
  useExisting: true,
  inject: true,
  provideInjectionTokensFrom: true,
};

/**
 * Rejects unknown names, and options that are set to undefined or null, also inside lists. TypeScript does not see them
 * in the result of a factory, or behind a `!`. They would admit "Bearer undefined", or a default would replace them:
 * another store, or weaker protection.
 * @param prefix the name of the option that contains the options, such as `auth.`
 * @throws OptionError naming the option
 */
export function assertNames(
  options: object,
  names: Readonly<Record<string, boolean>>,
  prefix = '',
): void {
  // Not only own names, because the options may be getters of a class.
  for (const name of new Set([...Object.keys(names), ...Object.keys(options)])) {
    if (!(name in options)) continue;
    const option = prefix + name;
    if (!Object.hasOwn(names, name)) {
      throw new OptionError(option, `${option} is not a known option.`);
    }
    const value = (options as Record<string, unknown>)[name];
    // A copy, because some() skips the holes of a list.
    const values: unknown[] = Array.isArray(value) ? Array.from(value) : [value];
    if (values.some((each) => each === undefined || each === null)) {
      const subject = Array.isArray(value) ? `an item of ${option}` : option;
      throw new OptionError(
        option,
        `${option} must be set or left out: ${subject} is undefined or null.`,
      );
    }
  }
}
