import { pino } from 'pino';
import { findNearMatch } from '../plants/program';
import {
  describeSlash,
  isOrigin,
  isRange,
  type Parse,
  parseDuration,
  parseFlag,
  parseHost,
  parseIntegerBetween,
  parseList,
  parseRate,
  parseSize,
} from './variable-parsers';

/** A variable that the service reads. */
interface Variable<T, Fallback> {
  /** The value of a variable that is not set. */
  readonly fallback: Fallback;
  /** What it must be, after "must be". */
  readonly expected: string;
  readonly parse: Parse<T>;
  /** What is wrong with a text, for the end of the message; it must not show a secret. */
  readonly explain: (text: string) => string;
}

function variable<T, Fallback>(
  fallback: Fallback,
  expected: string,
  parse: Parse<T>,
  explain: (text: string) => string = () => '',
): Variable<T, Fallback> {
  return { fallback, expected, parse, explain };
}

/** Some text, which is judged together with other variables. */
const text = variable(undefined, 'a text', (value) => value);

const port = <Fallback>(fallback: Fallback): Variable<number, Fallback> =>
  variable(fallback, 'a port from 0 to 65535', parseIntegerBetween(0, 65_535));

/** In milliseconds. */
const duration = (fallback: number, shortest = 1): Variable<number, number> =>
  variable(
    fallback,
    `a duration${shortest > 0 ? ' above zero' : ''}: seconds, or a number with the unit ms, s or m`,
    parseDuration(shortest),
  );

/** In bytes. */
const size = (fallback: number): Variable<number, number> =>
  variable(
    fallback,
    'a size above zero and up to 256 MiB: bytes, or a number with the unit KiB or MiB',
    parseSize,
  );

const flag = (fallback: boolean): Variable<boolean, boolean> =>
  variable(fallback, 'true or false', parseFlag);

const NO_MEMBERS: readonly string[] = [];
const LOG_LEVELS = [...Object.keys(pino.levels.values), 'silent'];

/** The variables that the service reads. docs/configuration.md says what they mean. */
export const VARIABLES = {
  HOST: variable('127.0.0.1', 'a host name or an IP address', parseHost),
  PORT: port(3000),
  HEALTH_PORT: port(undefined),
  DATABASE_URL: text,
  DATABASE_URL_FILE: text,
  AUTH_TOKENS: text,
  AUTH_TOKENS_FILE: text,
  AUTH_ISSUER: text,
  AUTH_AUDIENCE: text,
  AUTH_JWKS_URL: text,
  AUTH_SCOPE: text,
  AUTH_SCOPE_METRICS: text,
  TLS_CERT: text,
  TLS_KEY: text,
  BODY_LIMIT: size(2 ** 20),
  HEADERS_LIMIT: size(2 ** 14),
  MAX_CONNECTIONS: variable(4096, 'a number from 1 to 1000000', parseIntegerBetween(1, 1_000_000)),
  RATE_LIMIT: variable(
    undefined,
    'the number of requests that each caller may send per second, minute or hour, such as 100/s, 600/m or 5000/h',
    parseRate,
  ),
  CORS_ORIGINS: variable(
    NO_MEMBERS,
    'a list of origins such as https://app.example.org, without path and wildcards, separated by commas or white space',
    parseList(isOrigin),
    describeSlash,
  ),
  HEADERS_TIMEOUT: duration(10_000),
  REQUEST_TIMEOUT: duration(30_000),
  KEEP_ALIVE_TIMEOUT: duration(65_000),
  SHUTDOWN_GRACE: duration(0, 0),
  SHUTDOWN_TIMEOUT: duration(10_000),
  LOG_LEVEL: variable('info', `one of ${LOG_LEVELS.join(', ')}`, (value) =>
    LOG_LEVELS.find((level) => level === value.toLowerCase()),
  ),
  ACCESS_LOG: flag(false),
  TRUSTED_PROXIES: variable(
    NO_MEMBERS,
    'a list of IP addresses or ranges such as 10.0.0.0/8, separated by commas or white space',
    parseList(isRange),
  ),
  DOCS: flag(true),
  NODE_ENV: text,
};

type VariableName = keyof typeof VARIABLES;

/** The values of all variables. */
export type Values = {
  readonly [Name in VariableName]: (typeof VARIABLES)[Name] extends Variable<
    infer T,
    infer Fallback
  >
    ? T | Fallback
    : never;
};

/**
 * Reads all variables. An empty one counts as not set.
 *
 * @param faults gets a sentence for each invalid one
 */
export function readVariables(environment: NodeJS.ProcessEnv, faults: string[]): Values {
  const entries = Object.entries<Variable<unknown, unknown>>(VARIABLES);
  const values = entries.map(([name, { fallback, expected, parse, explain }]) => {
    const raw = environment[name]?.trim() ?? '';
    const value = raw === '' ? fallback : parse(raw);
    if (raw !== '' && value === undefined) {
      faults.push(`${name} must be ${expected}${explain(raw)}`);
    }
    return [name, value ?? fallback];
  });
  return Object.fromEntries(values) as Values;
}

const NAMES = Object.keys(VARIABLES);

/**
 * Variables that Kubernetes sets in every container of a namespace with a Service named `auth` or
 * `auth-…`. The operator has not set them, so they are not reported.
 */
const SERVICE_LINK =
  /^AUTH_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)$/;

export function describeUnknownAuth(environment: NodeJS.ProcessEnv): string[] {
  return unknownNames(environment)
    .filter((name) => name.startsWith('AUTH_') && !SERVICE_LINK.test(name))
    .map((name) => {
      const near = findNearMatch(name, NAMES);
      const valid = NAMES.filter((each) => each.startsWith('AUTH_')).join(', ');
      return `${name} is an unknown variable: ${near ? `did you mean ${near}?` : `known variables are ${valid}`}`;
    });
}

/** Describes each variable that is unknown to the service, but has nearly the name of a known one. */
export function describeMisspelled(environment: NodeJS.ProcessEnv): string[] {
  return unknownNames(environment).flatMap((name) => {
    const near = findNearMatch(name, NAMES);
    return near ? [`${name} is set but has no effect: did you mean ${near}?`] : [];
  });
}

function unknownNames(environment: NodeJS.ProcessEnv): string[] {
  return Object.keys(environment).filter(
    (name) => !NAMES.includes(name) && environment[name]?.trim(),
  );
}
