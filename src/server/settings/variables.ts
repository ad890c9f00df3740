import { DEFAULTS } from '../../plants/options/plants.options';
import type { ServiceAuthOptions } from '../../plants/auth/auth.options';
import type { OperatorError } from '../../plants/errors/operator.error';
import * as parsers from './variable-parsers';
import { readText } from './variable-text';

interface Variable<Value> {
  readonly name: string;
  readonly parser: parsers.Parser<Value>;
  /** The default, as it would be written in the variable. Undefined if there is none. */
  readonly fallback: string | undefined;
}

function variable<T, F extends string | undefined = undefined>(
  name: string,
  parser: parsers.Parser<T>,
  fallback?: F,
): Variable<F extends string ? T : T | undefined> {
  return { name, parser, fallback };
}

/** Durations are in milliseconds, sizes in bytes. */
export const SETTINGS = {
  host: variable('HOST', parsers.host, '127.0.0.1'),
  port: variable('PORT', parsers.port, '3000'),
  healthPort: variable('HEALTH_PORT', parsers.port),
  tlsCert: variable('TLS_CERT', parsers.anyString),
  tlsKey: variable('TLS_KEY', parsers.anyString),
  corsOrigins: variable('CORS_ORIGINS', parsers.origins, ''),
  bodyLimit: variable('BODY_LIMIT', parsers.size, `${DEFAULTS.bodyLimit / 2 ** 10}KiB`),
  headersLimit: variable('HEADERS_LIMIT', parsers.size, '16KiB'),
  headersTimeout: variable('HEADERS_TIMEOUT', parsers.duration, '10s'),
  requestTimeout: variable('REQUEST_TIMEOUT', parsers.duration, '30s'),
  keepAliveTimeout: variable('KEEP_ALIVE_TIMEOUT', parsers.duration, '65s'),
  maxConnections: variable('MAX_CONNECTIONS', parsers.connections, '2048'),
  rateLimit: variable('RATE_LIMIT', parsers.rate),
  shutdownGrace: variable('SHUTDOWN_GRACE', parsers.durationOrZero, '0'),
  shutdownTimeout: variable('SHUTDOWN_TIMEOUT', parsers.duration, '10s'),
  logLevel: variable('LOG_LEVEL', parsers.logLevel, 'info'),
  accessLog: variable('ACCESS_LOG', parsers.flag, 'false'),
  trustedProxies: variable('TRUSTED_PROXIES', parsers.ranges, ''),
  docs: variable('DOCS', parsers.flag, 'true'),
  nodeEnv: variable('NODE_ENV', parsers.anyString),
};

/** Variables that set options of the module's authentication. */
export const AUTH = {
  tokens: variable('AUTH_TOKENS', parsers.tokens),
  tokensFile: variable('AUTH_TOKENS_FILE', parsers.anyString),
  issuer: variable('AUTH_ISSUER', parsers.issuers),
  audience: variable('AUTH_AUDIENCE', parsers.audiences),
  jwksUrl: variable('AUTH_JWKS_URL', parsers.anyString),
  scope: variable('AUTH_SCOPE', parsers.anyString),
  metricsScope: variable('AUTH_SCOPE_METRICS', parsers.anyString),
} satisfies Record<keyof ServiceAuthOptions, Variable<unknown>>;

/** Variables that say which database. {@link VARIABLES} has the names of all. */
export const DATABASE = {
  url: variable('DATABASE_URL', parsers.anyString, `sqlite:${DEFAULTS.sqlite}`),
  file: variable('DATABASE_URL_FILE', parsers.anyString),
};

type Table = Readonly<Record<string, Variable<unknown>>>;

/** The values of a table of variables, by the names of its settings. */
export type Values<T extends Table> = {
  readonly [Name in keyof T]: T[Name] extends Variable<infer Value> ? Value : never;
};

/** Every variable of the service. */
export const VARIABLES = Object.values<Variable<unknown>>({ ...SETTINGS, ...AUTH, ...DATABASE });

/**
 * Reads the variables of a table. An empty variable counts as not set.
 * @param errors gets a sentence for each invalid variable
 */
export function readVariables<T extends Table>(
  table: T,
  environment: NodeJS.ProcessEnv,
  errors: string[],
): Values<T> {
  const values = Object.entries(table).map(([setting, { name, parser, fallback }]) => {
    try {
      const text = readText(name, environment) ?? fallback;
      const value = text === undefined ? undefined : parser.parse(text);
      if (value !== undefined || text === undefined) return [setting, value];
      const explanation = parser.explain?.(text);
      errors.push([`${name} must be ${parser.expected}.`, explanation ?? []].flat().join(' '));
    } catch (error) {
      errors.push((error as OperatorError).message);
    }
    return [setting, undefined];
  });
  return Object.fromEntries(values) as Values<T>;
}

/**
 * The names of the variables that Kubernetes sets for a Service, here `auth`: `AUTH_SERVICE_HOST`, `AUTH_SERVICE_PORT`,
 * `AUTH_SERVICE_PORT_` and the name of a port, `AUTH_PORT`, and `AUTH_PORT_80_TCP`, alone or with what it is.
 */
const SERVICE_LINK =
  /_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** Returns a sentence for each unknown `AUTH_` variable: if it were ignored, the service could accept other tokens. */
export function findUnknownVariables(environment: NodeJS.ProcessEnv): string[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith('AUTH_') && environment[name]?.trim())
    .filter((name) => !VARIABLES.some((known) => known.name === name) && !SERVICE_LINK.test(name))
    .map((name) => `${name} is not a variable of the service: correct its name, or unset it.`);
}
