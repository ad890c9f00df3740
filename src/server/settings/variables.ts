import { findNearMatch } from '../../plants/near-match';
import { DEFAULTS } from '../../plants/plants.options';
import type { Parser } from './variable-parsers';
import * as parsers from './variable-parsers';

interface Variable<Value> {
  readonly name: string;
  readonly parser: Parser<Value>;
  /** What counts as its text when it is not set. */
  readonly fallback: string | undefined;
  /** Its meaning in the tables of docs/configuration.md, which a test compares. */
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
  host: variable('HOST', parsers.host, '127.0.0.1', 'The address to listen on. `0.0.0.0` means every IPv4 address.'),
  port: variable('PORT', parsers.port, '3000', 'The port to listen on. `0` picks a free port, which is logged.'),
  healthPort: variable('HEALTH_PORT', parsers.port, undefined, 'A second port, for [health and metrics](operating.md#monitor) only.'),
  corsOrigins: variable('CORS_ORIGINS', parsers.origins, '', 'The origins whose [pages](operating.md#cors) may use the service. An origin, such as `https://app.example.org`, has no path and no wildcard.'),
  bodyLimit: variable('BODY_LIMIT', parsers.size, `${DEFAULTS.bodyLimit / 2 ** 20}MiB`, 'The maximum body size (error 40005), up to `256MiB`.'),
  headersLimit: variable('HEADERS_LIMIT', parsers.size, '16KiB', 'The maximum size of the request line and headers (error 43100), not counting white space before header values.'),
  headersTimeout: variable('HEADERS_TIMEOUT', parsers.duration, '10s', 'The maximum time to receive the headers (error 40800). Must not be longer than `REQUEST_TIMEOUT`.'),
  requestTimeout: variable('REQUEST_TIMEOUT', parsers.duration, '30s', 'The maximum time to receive the whole request (error 40800).'),
  keepAliveTimeout: variable('KEEP_ALIVE_TIMEOUT', parsers.duration, '65s', 'How long a connection may be idle between requests.'),
  maxConnections: variable('MAX_CONNECTIONS', parsers.connections, '4096', 'The maximum number of open connections. Further connections are closed.'),
  rateLimit: variable('RATE_LIMIT', parsers.rate, undefined, 'The maximum request rate per caller (error 42900), such as `100/s`, `600/m` or `1000/h`. Each process counts separately. Unlimited by default.'),
  shutdownGrace: variable('SHUTDOWN_GRACE', parsers.durationOrZero, '0', 'After SIGTERM or SIGINT, how long to keep serving while `/health/ready` already returns 503. Must be shorter than `SHUTDOWN_TIMEOUT`.'),
  shutdownTimeout: variable('SHUTDOWN_TIMEOUT', parsers.duration, '10s', 'The maximum duration of a shutdown, including `SHUTDOWN_GRACE`.'),
  logLevel: variable('LOG_LEVEL', parsers.logLevel, 'info', 'The least severe level that is logged.'),
  accessLog: variable('ACCESS_LOG', parsers.flag, 'false', '`true` logs each request.'),
  trustedProxies: variable('TRUSTED_PROXIES', parsers.ranges, '', 'The proxies, such as `10.0.0.0/8`, whose `X-Forwarded-For` the logs trust.'),
  docs: variable('DOCS', parsers.flag, 'true', '`false` removes Swagger UI and the OpenAPI document.'),
};

/** Variables that are options of the module's authentication. */
// prettier-ignore
export const AUTH = {
  tokens: variable('AUTH_TOKENS', parsers.tokens, undefined, 'The accepted [tokens](tokens.md#token-list), each with an optional scope.'),
  tokensFile: variable('AUTH_TOKENS_FILE', parsers.anyText, undefined, 'A [file of accepted tokens](tokens.md#token-file). The file is reloaded when it changes.'),
  issuer: variable('AUTH_ISSUER', parsers.anyText, undefined, 'An OpenID Connect [issuer of JWTs](tokens.md#jwts-of-an-issuer). Requires `AUTH_AUDIENCE`.'),
  audience: variable('AUTH_AUDIENCE', parsers.audiences, undefined, 'The accepted audiences. A JWT must contain at least one.'),
  jwksUrl: variable('AUTH_JWKS_URL', parsers.anyText, undefined, "The URL of the issuer's keys. By default, it is read from the issuer's discovery document."),
  scope: variable('AUTH_SCOPE', parsers.anyText, undefined, 'The scopes that a JWT needs to create plants (all of them).'),
  metricsScope: variable('AUTH_SCOPE_METRICS', parsers.anyText, undefined, 'The scopes that a JWT needs to read `/metrics`. Defaults to `AUTH_SCOPE`.'),
};

/** Variables that are judged together. */
// prettier-ignore
export const OTHERS = {
  databaseUrl: variable('DATABASE_URL', parsers.anyText, `sqlite:${DEFAULTS.sqlite}`, 'The store: `sqlite:PATH`, or `postgres://USER:PASSWORD@HOST:PORT/NAME` with [parameters](postgresql.md#url-parameters).'),
  databaseUrlFile: variable('DATABASE_URL_FILE', parsers.anyText, undefined, 'A file that contains the URL. Set only one of the two.'),
  certificate: variable('TLS_CERT', parsers.anyText, undefined, 'A certificate chain in PEM. Requires `TLS_KEY`.'),
  key: variable('TLS_KEY', parsers.anyText, undefined, 'The private key of the certificate, in PEM, without a passphrase. If both files are set, the service uses HTTPS on `PORT` and `HEALTH_PORT`.'),
  nodeEnv: variable('NODE_ENV', parsers.anyText, undefined, 'With `production`, the service requires an `AUTH_` variable, and `sslmode` for a PostgreSQL server on another machine.'),
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
