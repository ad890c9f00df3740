import { findNearMatch } from '../../plants/near-match';
import { DEFAULTS } from '../../plants/plants.options';
import type { Parser } from './variable-parsers';
import * as parsers from './variable-parsers';

interface Variable<Value> {
  readonly name: string;
  readonly parser: Parser<Value>;
  /** What counts as its text when it is not set. */
  readonly fallback: string | undefined;
  /** The rest of its line in docs/configuration.md, which a test compares. */
  readonly sentence: string;
}

function variable<T, F extends string | undefined>(
  name: string,
  parser: Parser<T>,
  fallback: F,
  sentence: string,
): Variable<F extends string ? T : T | undefined> {
  return { name, parser, fallback, sentence };
}

/** Variables that are settings by themselves. Durations are in milliseconds, sizes in bytes. */
// prettier-ignore
export const SETTINGS = {
  host: variable('HOST', parsers.host, '127.0.0.1', 'the address. `0.0.0.0` is every IPv4 address.'),
  port: variable('PORT', parsers.port, '3000', 'the port. With `0` the log names a free one.'),
  healthPort: variable('HEALTH_PORT', parsers.port, undefined, 'a second port, for [health and metrics](operating.md#watch) alone.'),
  corsOrigins: variable('CORS_ORIGINS', parsers.origins, '', 'a list of origins whose [pages](operating.md#cors) may use the service. An origin, such as `https://app.example.org`, has no path and no wildcard.'),
  bodyLimit: variable('BODY_LIMIT', parsers.size, `${DEFAULTS.bodyLimit / 2 ** 20}MiB`, 'the size of a body (error 40005). At most `256MiB`.'),
  headersLimit: variable('HEADERS_LIMIT', parsers.size, '16KiB', 'the size of the head of a request (43100), without blanks before values.'),
  headersTimeout: variable('HEADERS_TIMEOUT', parsers.duration, '10s', 'the time to receive the head (40800). At most `REQUEST_TIMEOUT`.'),
  requestTimeout: variable('REQUEST_TIMEOUT', parsers.duration, '30s', 'the time to receive the whole request (40800).'),
  keepAliveTimeout: variable('KEEP_ALIVE_TIMEOUT', parsers.duration, '65s', 'the time that a connection may be idle between requests.'),
  maxConnections: variable('MAX_CONNECTIONS', parsers.connections, '4096', 'the number of open connections. The service closes others.'),
  rateLimit: variable('RATE_LIMIT', parsers.rate, undefined, 'the rate of each caller (42900), such as `100/s`, `600/m` or `1000/h`. Each process counts for itself, not across instances. Without it, no rate is limited.'),
  shutdownGrace: variable('SHUTDOWN_GRACE', parsers.durationOrZero, '0', 'how long the service goes on serving while it is not ready. Shorter than `SHUTDOWN_TIMEOUT`.'),
  shutdownTimeout: variable('SHUTDOWN_TIMEOUT', parsers.duration, '10s', 'how long ending may take, including the grace.'),
  logLevel: variable('LOG_LEVEL', parsers.logLevel, 'info', '`trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent`.'),
  accessLog: variable('ACCESS_LOG', parsers.flag, 'false', '`true` logs each request.'),
  trustedProxies: variable('TRUSTED_PROXIES', parsers.ranges, '', 'a list of proxies, such as `10.0.0.0/8`, whose `X-Forwarded-For` the access log believes.'),
  docs: variable('DOCS', parsers.flag, 'true', '`false` removes Swagger UI and the OpenAPI document.'),
};

/** Variables that are options of the module's authentication. */
// prettier-ignore
export const AUTH = {
  tokens: variable('AUTH_TOKENS', parsers.tokens, undefined, 'a list of accepted tokens.'),
  tokensFile: variable('AUTH_TOKENS_FILE', parsers.anyText, undefined, 'a file of accepted tokens. The service follows its changes.'),
  issuer: variable('AUTH_ISSUER', parsers.anyText, undefined, 'an OpenID Connect issuer of JWTs. It needs `AUTH_AUDIENCE`.'),
  audience: variable('AUTH_AUDIENCE', parsers.audiences, undefined, 'audiences, of which a JWT must name one.'),
  jwksUrl: variable('AUTH_JWKS_URL', parsers.anyText, undefined, "the URL of the issuer's keys. Without it, the issuer names it."),
  scope: variable('AUTH_SCOPE', parsers.anyText, undefined, 'scopes, all of which a JWT must have.'),
  metricsScope: variable('AUTH_SCOPE_METRICS', parsers.anyText, undefined, 'the same for `/metrics`. Without it, `AUTH_SCOPE` counts.'),
};

/** Variables that are judged together. */
// prettier-ignore
export const OTHERS = {
  databaseUrl: variable('DATABASE_URL', parsers.anyText, `sqlite:${DEFAULTS.sqlite}`, '`sqlite:PATH`, or `postgres://USER:PASSWORD@HOST:PORT/NAME` with [parameters](postgresql.md#one-server).'),
  databaseUrlFile: variable('DATABASE_URL_FILE', parsers.anyText, undefined, 'a file that contains the URL. Set only one of the two.'),
  certificate: variable('TLS_CERT', parsers.anyText, undefined, 'a certificate in PEM.'),
  key: variable('TLS_KEY', parsers.anyText, undefined, 'its key in PEM. With both files, the service speaks HTTPS, on both ports.'),
  nodeEnv: variable('NODE_ENV', parsers.anyText, undefined, 'with `production`, the service needs an `AUTH_` variable, and `sslmode` for a PostgreSQL on another machine.'),
};

type Table = Readonly<Record<string, Variable<unknown>>>;

export type Values<T extends Table> = {
  readonly [Name in keyof T]: T[Name] extends Variable<infer Value> ? Value : never;
};

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
    const given = environment[name]?.trim() ?? '';
    const text = given === '' ? fallback : given;
    if (text === undefined) return [setting, undefined];
    try {
      const value = parser.parse(text);
      if (value === undefined) faults.push(`${name} must be ${parser.expected}`);
      return [setting, value];
    } catch (error) {
      faults.push(`${name} is invalid: ${(error as Error).message}`);
      return [setting, undefined];
    }
  });
  return Object.fromEntries(values) as Values<T>;
}

export const VARIABLES = Object.values<Variable<unknown>>({ ...SETTINGS, ...AUTH, ...OTHERS });

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
  const names = VARIABLES.map(({ name }) => name);
  for (const [name, value] of Object.entries(environment)) {
    if (names.includes(name) || !value?.trim() || SERVICE_LINK.test(name)) continue;
    const near = findNearMatch(name, names);
    if (isAuth(name)) {
      const advice = near
        ? `did you mean ${near}?`
        : `known variables are ${names.filter(isAuth).join(', ')}`;
      faults.push(`${name} is an unknown variable: ${advice}`);
    } else if (near) {
      warnings.push(`${name} is set but has no effect: did you mean ${near}?`);
    }
  }
  return warnings;
}

function isAuth(name: string): boolean {
  return name.startsWith('AUTH_');
}
