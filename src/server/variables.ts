import { findNearMatch } from '../plants/program';
import {
  anyText,
  connections,
  duration,
  durationOrZero,
  flag,
  host,
  logLevel,
  origins,
  type Parser,
  port,
  ranges,
  rate,
  size,
  tokens,
} from './variable-parsers';

/** A variable that the service reads. */
interface Variable<Value> {
  readonly parser: Parser<Value>;
  /** The value of a variable that is not set. */
  readonly fallback: Value;
}

function variable<T>(parser: Parser<T>): Variable<T | undefined>;
function variable<T>(parser: Parser<T>, fallback: T): Variable<T>;
function variable<T>(parser: Parser<T>, fallback?: T): Variable<T | undefined> {
  return { parser, fallback };
}

/** The variables that the service reads. docs/configuration.md says what they mean. */
export const VARIABLES = {
  HOST: variable(host, '127.0.0.1'),
  PORT: variable(port, 3000),
  HEALTH_PORT: variable(port),
  DATABASE_URL: variable(anyText),
  DATABASE_URL_FILE: variable(anyText),
  AUTH_TOKENS: variable(tokens, []),
  AUTH_TOKENS_FILE: variable(anyText),
  AUTH_ISSUER: variable(anyText),
  AUTH_AUDIENCE: variable(anyText),
  AUTH_JWKS_URL: variable(anyText),
  AUTH_SCOPE: variable(anyText),
  AUTH_SCOPE_METRICS: variable(anyText),
  TLS_CERT: variable(anyText),
  TLS_KEY: variable(anyText),
  BODY_LIMIT: variable(size, 2 ** 20),
  HEADERS_LIMIT: variable(size, 2 ** 14),
  MAX_CONNECTIONS: variable(connections, 4096),
  RATE_LIMIT: variable(rate),
  CORS_ORIGINS: variable(origins, []),
  HEADERS_TIMEOUT: variable(duration, 10_000),
  REQUEST_TIMEOUT: variable(duration, 30_000),
  KEEP_ALIVE_TIMEOUT: variable(duration, 65_000),
  SHUTDOWN_GRACE: variable(durationOrZero, 0),
  SHUTDOWN_TIMEOUT: variable(duration, 10_000),
  LOG_LEVEL: variable(logLevel, 'info'),
  ACCESS_LOG: variable(flag, false),
  TRUSTED_PROXIES: variable(ranges, []),
  DOCS: variable(flag, true),
  NODE_ENV: variable(anyText),
};

/** The values of all variables. */
export type Values = {
  readonly [Name in keyof typeof VARIABLES]: (typeof VARIABLES)[Name]['fallback'];
};

/**
 * Reads all variables. An empty one counts as not set.
 *
 * @param faults gets a sentence for each invalid one
 */
export function readVariables(environment: NodeJS.ProcessEnv, faults: string[]): Values {
  const entries = Object.entries<Variable<unknown>>(VARIABLES);
  const values = entries.map(([name, { parser, fallback }]) => {
    const text = environment[name]?.trim();
    if (!text) return [name, fallback];
    try {
      const value = parser.parse(text);
      if (value !== undefined) return [name, value];
      faults.push(`${name} must be ${parser.expected}`);
    } catch (error) {
      faults.push(`${name}: ${(error as Error).message}`);
    }
    return [name, fallback];
  });
  return Object.fromEntries(values) as Values;
}

const NAMES = Object.keys(VARIABLES);
const AUTH_NAMES = NAMES.filter((name) => name.startsWith('AUTH_'));

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
  for (const [name, value] of Object.entries(environment)) {
    if (NAMES.includes(name) || !value?.trim() || SERVICE_LINK.test(name)) continue;
    const near = findNearMatch(name, NAMES);
    if (name.startsWith('AUTH_')) {
      const advice = near
        ? `did you mean ${near}?`
        : `known variables are ${AUTH_NAMES.join(', ')}`;
      faults.push(`${name} is an unknown variable: ${advice}`);
    } else if (near) {
      warnings.push(`${name} is set but has no effect: did you mean ${near}?`);
    }
  }
  return warnings;
}
