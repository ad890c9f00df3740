import { DEFAULTS } from '../../plants/plants.options';
import type { Parser } from './variable-parsers';
import * as parsers from './variable-parsers';

interface Variable<Value> {
  readonly name: string;
  readonly parser: Parser<Value>;
  /** The default, as it would be written in the variable. Undefined if there is none. */
  readonly fallback: string | undefined;
  /** The meaning in the tables of docs/configuration.md. A test compares them. */
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

/** Variables that are settings of their own. Durations are in milliseconds, sizes in bytes. */
// prettier-ignore
export const SETTINGS = {
  host: variable('HOST', parsers.host, '127.0.0.1', 'The address to listen on. `0.0.0.0` means every IPv4 address.'),
  port: variable('PORT', parsers.port, '3000', 'The port to listen on. `0` picks a free port, which is logged.'),
  healthPort: variable('HEALTH_PORT', parsers.port, undefined, 'A second port, for [health and metrics](operating.md#monitor) only.'),
  corsOrigins: variable('CORS_ORIGINS', parsers.origins, '', 'The origins whose [pages](operating.md#cors) may use the service. An origin, such as `https://app.example.org`, has no path and no wildcard.'),
  bodyLimit: variable('BODY_LIMIT', parsers.size, `${DEFAULTS.bodyLimit / 2 ** 10}KiB`, 'The maximum body size (error 40005), up to `256MiB`.'),
  headersLimit: variable('HEADERS_LIMIT', parsers.size, '16KiB', 'The maximum size of the request line and headers (error 43100), not counting white space before header values.'),
  headersTimeout: variable('HEADERS_TIMEOUT', parsers.duration, '10s', 'The maximum time to receive the headers (error 40800). Must not be longer than `REQUEST_TIMEOUT`.'),
  requestTimeout: variable('REQUEST_TIMEOUT', parsers.duration, '30s', 'The maximum time to receive the whole request (error 40800).'),
  keepAliveTimeout: variable('KEEP_ALIVE_TIMEOUT', parsers.duration, '65s', 'How long a connection may be idle between requests.'),
  maxConnections: variable('MAX_CONNECTIONS', parsers.connections, '4096', 'The maximum number of open connections. Further connections are closed.'),
  rateLimit: variable('RATE_LIMIT', parsers.rate, undefined, 'The maximum request rate per caller (error 42900), such as `100/s`, `600/m` or `1000/h`. Each process counts separately. Unlimited by default.'),
  shutdownGrace: variable('SHUTDOWN_GRACE', parsers.durationOrZero, '0', 'After SIGTERM, SIGINT or SIGHUP, how long to keep serving while `/health/ready` already returns 503. Must be shorter than `SHUTDOWN_TIMEOUT`.'),
  shutdownTimeout: variable('SHUTDOWN_TIMEOUT', parsers.duration, '10s', 'The maximum duration of a shutdown, including `SHUTDOWN_GRACE`.'),
  logLevel: variable('LOG_LEVEL', parsers.logLevel, 'info', 'The least severe level that is logged.'),
  accessLog: variable('ACCESS_LOG', parsers.flag, 'false', '`true` logs each request, at the level `info`.'),
  trustedProxies: variable('TRUSTED_PROXIES', parsers.ranges, '', 'The proxies, such as `10.0.0.0/8`, whose `X-Forwarded-For` the logs trust.'),
  docs: variable('DOCS', parsers.flag, 'true', '`false` removes Swagger UI and the OpenAPI document.'),
};

/** Variables that set options of the module's authentication. */
// prettier-ignore
export const AUTH = {
  tokens: variable('AUTH_TOKENS', parsers.tokens, undefined, 'The accepted [tokens](tokens.md#token-list), each with an optional scope.'),
  tokensFile: variable('AUTH_TOKENS_FILE', parsers.anyString, undefined, 'A [file of accepted tokens](tokens.md#token-file). The file is reloaded when it changes.'),
  issuer: variable('AUTH_ISSUER', parsers.anyString, undefined, 'An OpenID Connect [issuer of JWTs](tokens.md#jwts-of-an-issuer). Requires `AUTH_AUDIENCE`.'),
  audience: variable('AUTH_AUDIENCE', parsers.audiences, undefined, 'The accepted audiences. A JWT must contain at least one.'),
  jwksUrl: variable('AUTH_JWKS_URL', parsers.anyString, undefined, "The URL of the issuer's keys. By default, it is read from the issuer's discovery document."),
  scope: variable('AUTH_SCOPE', parsers.anyString, undefined, 'The scopes that a JWT needs to create plants (all of them).'),
  metricsScope: variable('AUTH_SCOPE_METRICS', parsers.anyString, undefined, 'The scopes that a JWT needs to read `/metrics`. Defaults to `AUTH_SCOPE`.'),
};

/** Variables that are validated in combination with others. */
// prettier-ignore
export const COMBINED_SETTINGS = {
  databaseUrl: variable('DATABASE_URL', parsers.anyString, `sqlite:${DEFAULTS.sqlite}`, 'The store: `sqlite:PATH`, or `postgres://USER:PASSWORD@HOST:PORT/NAME` with [parameters](postgresql.md#url-parameters).'),
  databaseUrlFile: variable('DATABASE_URL_FILE', parsers.anyString, undefined, 'A file that contains the URL. Set only one of the two.'),
  certificate: variable('TLS_CERT', parsers.anyString, undefined, 'A certificate chain in PEM. Requires `TLS_KEY`.'),
  key: variable('TLS_KEY', parsers.anyString, undefined, 'The private key of the certificate, in PEM, without a passphrase. If both files are set, the service uses HTTPS on `PORT` and `HEALTH_PORT`.'),
  nodeEnv: variable('NODE_ENV', parsers.anyString, undefined, 'With `production`, the service requires an `AUTH_` variable, PostgreSQL with `fsync`, and `sslmode` if that is on another machine.'),
};

type Table = Readonly<Record<string, Variable<unknown>>>;

export type Values<T extends Table> = {
  readonly [Name in keyof T]: T[Name] extends Variable<infer Value> ? Value : never;
};

export const VARIABLES = Object.values<Variable<unknown>>({
  ...SETTINGS,
  ...AUTH,
  ...COMBINED_SETTINGS,
});
const NAMES: readonly string[] = VARIABLES.map(({ name }) => name);

/** Whether Kubernetes has set the variable: for a Service named `health`, it sets `HEALTH_PORT=tcp://ADDRESS:80`. */
function isServiceLink(name: string, value: string): boolean {
  return name.endsWith('PORT') && /^(?:tcp|udp|sctp):\/\/\S+:\d+$/.test(value);
}

/**
 * Reads the variables of a table. An empty variable counts as not set, and so does a service link of Kubernetes.
 *
 * @param errors gets a sentence for each invalid variable
 */
export function readVariables<T extends Table>(
  table: T,
  environment: NodeJS.ProcessEnv,
  errors: string[],
): Values<T> {
  const values = Object.entries(table).map(([setting, { name, parser, fallback }]) => {
    const given = environment[name]?.trim() ?? '';
    const text = given === '' || isServiceLink(name, given) ? fallback : given;
    const value = text === undefined ? undefined : parser.parse(text);
    if (text !== undefined && value === undefined) {
      errors.push(`${name} must be ${parser.expected}.`);
    }
    return [setting, value];
  });
  return Object.fromEntries(values) as Values<T>;
}

/**
 * Finds variables that are ignored, but look like settings.
 *
 * @param errors gets a sentence for each misspelled `AUTH_` variable: if it were ignored, the service would accept
 *   other tokens
 * @returns a warning for each other one
 */
export function findIgnoredVariables(environment: NodeJS.ProcessEnv, errors: string[]): string[] {
  const warnings: string[] = [];
  for (const [name, text] of Object.entries(environment)) {
    const value = text?.trim() ?? '';
    if (NAMES.includes(name) && isServiceLink(name, value)) {
      warnings.push(
        `${name} is ignored: Kubernetes has set it for a Service. Set enableServiceLinks: false.`,
      );
    }
    if (NAMES.includes(name) || value === '') continue;
    const near = NAMES.find((known) => isWithinOneEdit(name.toUpperCase(), known));
    const isAuth = name.startsWith('AUTH_');
    if (near) {
      const problems = isAuth ? errors : warnings;
      problems.push(`${name} is not a known variable: did you mean ${near}?`);
    } else if (isAuth) {
      warnings.push(`${name} is ignored: the service has no such variable.`);
    }
  }
  return warnings;
}

/** Whether one character is inserted, removed or replaced, or two neighboring characters are swapped. */
function isWithinOneEdit(name: string, known: string): boolean {
  let start = 0;
  while (start < name.length && name[start] === known[start]) start++;
  const [a, b] = [name.slice(start), known.slice(start)];
  const swapped = a.charAt(1) + a.charAt(0) + a.slice(2);
  return [a, a.slice(1), swapped].includes(b) || [a, a.slice(1)].includes(b.slice(1));
}
