import { DEFAULTS } from '../../plants/plants.options';
import type { Parser } from './variable-parsers';
import * as parsers from './variable-parsers';

interface Variable<Value> {
  readonly name: string;
  readonly parser: Parser<Value>;
  /** The default, as it would be written in the variable. Undefined if there is none. */
  readonly fallback: string | undefined;
}

function variable<T, F extends string | undefined = undefined>(
  name: string,
  parser: Parser<T>,
  fallback?: F,
): Variable<F extends string ? T : T | undefined> {
  return { name, parser, fallback };
}

/** Variables that are settings of their own. Durations are in milliseconds, sizes in bytes. */
export const SETTINGS = {
  host: variable('HOST', parsers.host, '127.0.0.1'),
  port: variable('PORT', parsers.port, '3000'),
  healthPort: variable('HEALTH_PORT', parsers.port),
  corsOrigins: variable('CORS_ORIGINS', parsers.origins, ''),
  bodyLimit: variable('BODY_LIMIT', parsers.size, `${DEFAULTS.bodyLimit / 2 ** 10}KiB`),
  headersLimit: variable('HEADERS_LIMIT', parsers.size, '16KiB'),
  headersTimeout: variable('HEADERS_TIMEOUT', parsers.duration, '10s'),
  requestTimeout: variable('REQUEST_TIMEOUT', parsers.duration, '30s'),
  keepAliveTimeout: variable('KEEP_ALIVE_TIMEOUT', parsers.duration, '65s'),
  maxConnections: variable('MAX_CONNECTIONS', parsers.connections, '4096'),
  rateLimit: variable('RATE_LIMIT', parsers.rate),
  shutdownGrace: variable('SHUTDOWN_GRACE', parsers.durationOrZero, '0'),
  shutdownTimeout: variable('SHUTDOWN_TIMEOUT', parsers.duration, '10s'),
  logLevel: variable('LOG_LEVEL', parsers.logLevel, 'info'),
  accessLog: variable('ACCESS_LOG', parsers.flag, 'false'),
  trustedProxies: variable('TRUSTED_PROXIES', parsers.ranges, ''),
  docs: variable('DOCS', parsers.flag, 'true'),
};

/** Variables that set options of the module's authentication. */
export const AUTH = {
  tokens: variable('AUTH_TOKENS', parsers.tokens),
  tokensFile: variable('AUTH_TOKENS_FILE', parsers.anyString),
  issuer: variable('AUTH_ISSUER', parsers.anyString),
  audience: variable('AUTH_AUDIENCE', parsers.audiences),
  jwksUrl: variable('AUTH_JWKS_URL', parsers.anyString),
  scope: variable('AUTH_SCOPE', parsers.anyString),
  metricsScope: variable('AUTH_SCOPE_METRICS', parsers.anyString),
};

/** Variables that are validated in combination with others. */
export const COMBINED_SETTINGS = {
  databaseUrl: variable('DATABASE_URL', parsers.anyString, `sqlite:${DEFAULTS.sqlite}`),
  databaseUrlFile: variable('DATABASE_URL_FILE', parsers.anyString),
  certificate: variable('TLS_CERT', parsers.anyString),
  key: variable('TLS_KEY', parsers.anyString),
  nodeEnv: variable('NODE_ENV', parsers.anyString),
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
