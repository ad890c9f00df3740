import { DEFAULTS, findNearMatch } from '../../plants/program';
import type { Parser } from './variable-parsers';
import * as parsers from './variable-parsers';

interface Variable<Value> {
  readonly name: string;
  readonly parser: Parser<Value>;
  /** The value of a variable that is not set. */
  readonly fallback: Value;
}

function variable<T>(name: string, parser: Parser<T>): Variable<T | undefined>;
function variable<T>(name: string, parser: Parser<T>, fallback: T): Variable<T>;
function variable<T>(name: string, parser: Parser<T>, fallback?: T): Variable<T | undefined> {
  return { name, parser, fallback };
}

/** Variables that are settings by themselves. Durations are in milliseconds, sizes in bytes. */
export const SETTINGS = {
  /** A host name or an IP address to listen on. */
  host: variable('HOST', parsers.host, '127.0.0.1'),
  /** 0 picks a free port. */
  port: variable('PORT', parsers.port, 3000),
  /** For health and metrics too; undefined for no such port. */
  healthPort: variable('HEALTH_PORT', parsers.port),
  bodyLimit: variable('BODY_LIMIT', parsers.size, DEFAULTS.bodyLimit),
  /** Of the header section of a request, request line included. */
  headersLimit: variable('HEADERS_LIMIT', parsers.size, 2 ** 14),
  maxConnections: variable('MAX_CONNECTIONS', parsers.connections, 4096),
  /** The limit for each caller; undefined for none. */
  rateLimit: variable('RATE_LIMIT', parsers.rate),
  /** None for no CORS. */
  corsOrigins: variable('CORS_ORIGINS', parsers.origins, []),
  headersTimeout: variable('HEADERS_TIMEOUT', parsers.duration, 10_000),
  requestTimeout: variable('REQUEST_TIMEOUT', parsers.duration, 30_000),
  keepAliveTimeout: variable('KEEP_ALIVE_TIMEOUT', parsers.duration, 65_000),
  /** How long the service reports not ready, but still serves, before it closes. */
  shutdownGrace: variable('SHUTDOWN_GRACE', parsers.durationOrZero, 0),
  /** The limit for the whole shutdown, the grace included. */
  shutdownTimeout: variable('SHUTDOWN_TIMEOUT', parsers.duration, 10_000),
  logLevel: variable('LOG_LEVEL', parsers.logLevel, 'info'),
  accessLog: variable('ACCESS_LOG', parsers.flag, false),
  /** Addresses and ranges of proxies whose `X-Forwarded-For` the access log believes. */
  trustedProxies: variable('TRUSTED_PROXIES', parsers.ranges, []),
  docs: variable('DOCS', parsers.flag, true),
};

/** Variables that are options of the module's authentication. */
export const AUTH = {
  tokens: variable('AUTH_TOKENS', parsers.tokens, []),
  tokensFile: variable('AUTH_TOKENS_FILE', parsers.anyText),
  issuer: variable('AUTH_ISSUER', parsers.anyText),
  audience: variable('AUTH_AUDIENCE', parsers.audiences),
  jwksUrl: variable('AUTH_JWKS_URL', parsers.anyText),
  scope: variable('AUTH_SCOPE', parsers.anyText),
  metricsScope: variable('AUTH_SCOPE_METRICS', parsers.anyText),
};

/** Variables that are judged together. `database.settings.ts` reads those of the database. */
export const OTHERS = {
  databaseUrl: variable('DATABASE_URL', parsers.anyText),
  databaseUrlFile: variable('DATABASE_URL_FILE', parsers.anyText),
  certificate: variable('TLS_CERT', parsers.anyText),
  key: variable('TLS_KEY', parsers.anyText),
  nodeEnv: variable('NODE_ENV', parsers.anyText),
};

type Table = Readonly<Record<string, Variable<unknown>>>;

export type Values<T extends Table> = { readonly [Name in keyof T]: T[Name]['fallback'] };

/**
 * Reads the variables of a table. An empty one counts as not set.
 *
 * @param faults gets a sentence for each invalid one
 */
export function readVariables<T extends Table>(
  table: T,
  environment: NodeJS.ProcessEnv,
  faults: string[],
): Values<T> {
  const values = Object.entries(table).map(([setting, { name, parser, fallback }]) => {
    const text = environment[name]?.trim();
    if (!text) return [setting, fallback];
    try {
      const value = parser.parse(text);
      if (value !== undefined) return [setting, value];
      faults.push(`${name} must be ${parser.expected}`);
    } catch (error) {
      faults.push(`${name} is invalid: ${(error as Error).message}`);
    }
    return [setting, fallback];
  });
  return Object.fromEntries(values) as Values<T>;
}

export const NAMES = Object.values({ ...SETTINGS, ...AUTH, ...OTHERS }).map(({ name }) => name);

/**
 * Variables that Kubernetes sets in every container of a namespace with a Service named `auth` or
 * `auth-…`. The operator has not set them, so they are not reported.
 */
const SERVICE_LINK = /^AUTH_(?:\w+_)?(?:SERVICE_HOST|(?:SERVICE_)?PORT(?:_\w+)?)$/;

/**
 * Looks for mistakes among the variables that the service does not read.
 *
 * @param faults gets a sentence for each that begins with `AUTH_`
 * @returns a sentence for each other one that has nearly the name of a known one
 */
export function findMisspelled(environment: NodeJS.ProcessEnv, faults: string[]): string[] {
  const warnings: string[] = [];
  const authNames = Object.values(AUTH).map(({ name }) => name);
  for (const [name, value] of Object.entries(environment)) {
    if (NAMES.includes(name) || !value?.trim() || SERVICE_LINK.test(name)) continue;
    const near = findNearMatch(name, NAMES);
    if (name.startsWith('AUTH_')) {
      const advice = near ? `did you mean ${near}?` : `known variables are ${authNames.join(', ')}`;
      faults.push(`${name} is an unknown variable: ${advice}`);
    } else if (near) {
      warnings.push(`${name} is set but has no effect: did you mean ${near}?`);
    }
  }
  return warnings;
}
