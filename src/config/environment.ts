import { isIP } from 'node:net';
import { pino } from 'pino';
import {
  formatScopes,
  formatTokenEntry,
  isAuthConfigured,
  parseTokenList,
  type ServiceAuthOptions,
  validateAuthOptions,
} from '../auth';
import { OperatorError } from '../errors';
import type { HttpOptions } from '../server';
import type { RateLimitOptions } from '../operations/limits';
import type { ShutdownOptions } from '../operations/health';
import { isTracingEnabled } from '../operations/tracing';
import { DEFAULT_DATABASE, type DatabaseSettings, readDatabase } from './database';
import { describeMisspelled, describeUnknownAuth } from './variables';

/** The settings of the standalone service. Durations are in milliseconds, sizes in bytes. */
export interface Settings extends HttpOptions, ShutdownOptions {
  /** A host name or an IP address to listen on. */
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** For health and metrics too; undefined for no such port. */
  readonly healthPort: number | undefined;
  readonly database: DatabaseSettings;
  /** Its tokens are digests. */
  readonly auth: ServiceAuthOptions;
  /** The limit for each caller; undefined for none. */
  readonly rateLimit: RateLimitOptions | undefined;
  readonly logLevel: string;
  readonly accessLog: boolean;
  /** Addresses and ranges of proxies whose `X-Forwarded-For` the access log believes. */
  readonly trustedProxies: readonly string[];
  readonly docs: boolean;
  /** Whether OpenTelemetry traces requests. Its SDK reads the rest of its settings itself. */
  readonly tracing: boolean;
  /** Warnings about the environment, for the log: one sentence each. */
  readonly warnings: readonly string[];
}

type Parse<T> = (text: string) => T | undefined;

/**
 * Reads the settings from an environment. An empty variable counts as not set.
 *
 * @throws OperatorError when any variable is invalid; the message never shows a secret
 */
export function readEnvironment(environment: NodeJS.ProcessEnv): Settings {
  const faults: string[] = [];
  function readText(name: string): string | undefined {
    const value = environment[name]?.trim();
    return value === '' ? undefined : value;
  }

  function read<T>(name: string, fallback: T, expected: string, parse: Parse<T>): T {
    const raw = readText(name);
    if (raw === undefined) return fallback;
    const value = parse(raw);
    if (value === undefined) faults.push(`${name} must be ${expected}`);
    return value ?? fallback;
  }

  const readPort = <T>(name: string, fallback: T): T | number =>
    read<T | number>(name, fallback, 'a port from 0 to 65535', parseIntegerBetween(0, 65_535));
  const readDuration = (name: string, fallback: number, shortest = 1): number =>
    read(
      name,
      fallback,
      `a duration${shortest > 0 ? ' above zero' : ''}: seconds, or a number with the unit ms, s or m`,
      (text) => parseDuration(text, shortest),
    );
  const readSize = (name: string, fallback: number): number =>
    read(
      name,
      fallback,
      'a size above zero and up to 256 MiB: bytes, or a number with the unit KiB or MiB',
      parseSize,
    );
  const readFlag = (name: string, fallback: boolean): boolean =>
    read(name, fallback, 'true or false', (value) =>
      /^(?:true|false)$/i.test(value) ? value.toLowerCase() === 'true' : undefined,
    );

  function attempt<T>(fallback: T, prefix: string, find: () => T): T {
    try {
      return find();
    } catch (error) {
      faults.push(prefix + (error as Error).message);
      return fallback;
    }
  }

  const certificate = readText('TLS_CERT');
  const key = readText('TLS_KEY');
  if (!certificate !== !key) faults.push('TLS_CERT and TLS_KEY must both be set, or neither');

  const settings: Settings = {
    host: read('HOST', '127.0.0.1', 'a host name or an IP address', parseHost),
    port: readPort('PORT', 3000),
    healthPort: readPort('HEALTH_PORT', undefined),
    database: attempt(DEFAULT_DATABASE, '', () => readDatabase(environment)),
    auth: {
      tokens: attempt([], 'AUTH_TOKENS: ', () => parseTokens(readText('AUTH_TOKENS'))),
      tokensFile: readText('AUTH_TOKENS_FILE'),
      issuer: readText('AUTH_ISSUER'),
      audience: readText('AUTH_AUDIENCE'),
      jwksUrl: readText('AUTH_JWKS_URL'),
      scope: readText('AUTH_SCOPE'),
      metricsScope: readText('AUTH_SCOPE_METRICS'),
    },
    tls: certificate && key ? { certificate, key } : undefined,
    bodyLimit: readSize('BODY_LIMIT', 2 ** 20),
    headersLimit: readSize('HEADERS_LIMIT', 2 ** 14),
    maxConnections: read(
      'MAX_CONNECTIONS',
      4096,
      'a number from 1 to 1000000',
      parseIntegerBetween(1, 1_000_000),
    ),
    corsOrigins: read(
      'CORS_ORIGINS',
      [],
      'a list of origins such as https://app.example.org, without path and wildcards, separated by commas or white space',
      parseList(isOrigin),
    ),
    rateLimit: read<RateLimitOptions | undefined>(
      'RATE_LIMIT',
      undefined,
      'the number of requests that each caller may send per second, minute or hour, such as 100/s, 600/m or 5000/h',
      parseRate,
    ),
    headersTimeout: readDuration('HEADERS_TIMEOUT', 10_000),
    requestTimeout: readDuration('REQUEST_TIMEOUT', 30_000),
    keepAliveTimeout: readDuration('KEEP_ALIVE_TIMEOUT', 65_000),
    shutdownGrace: readDuration('SHUTDOWN_GRACE', 0, 0),
    shutdownTimeout: readDuration('SHUTDOWN_TIMEOUT', 10_000),
    logLevel: read('LOG_LEVEL', 'info', `one of ${LOG_LEVELS.join(', ')}`, (value) =>
      LOG_LEVELS.find((level) => level === value.toLowerCase()),
    ),
    accessLog: readFlag('ACCESS_LOG', false),
    trustedProxies: read(
      'TRUSTED_PROXIES',
      [],
      'a list of IP addresses or ranges such as 10.0.0.0/8, separated by commas or white space',
      parseList(isRange),
    ),
    docs: readFlag('DOCS', true),
    tracing: isTracingEnabled(environment),
    warnings: describeMisspelled(environment),
  };

  if (settings.headersTimeout > settings.requestTimeout) {
    faults.push('HEADERS_TIMEOUT must not be longer than REQUEST_TIMEOUT');
  }
  faults.push(...validateAuthOptions(settings.auth, AUTH_VARIABLES));
  faults.push(...describeUnknownAuth(environment));
  // An invalid AUTH_TOKENS has been reported already.
  const hasTokens = isAuthConfigured(settings.auth) || readText('AUTH_TOKENS') !== undefined;
  if (environment.NODE_ENV === 'production' && !hasTokens) {
    faults.push(
      'AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production',
    );
  }
  if (settings.shutdownGrace >= settings.shutdownTimeout) {
    faults.push('SHUTDOWN_GRACE must be shorter than SHUTDOWN_TIMEOUT');
  }
  if (faults.length > 0) throw new OperatorError(faults.join('\n'));
  return Object.freeze(settings);
}

const LOG_LEVELS = [...Object.keys(pino.levels.values), 'silent'];

const AUTH_VARIABLES = {
  issuer: 'AUTH_ISSUER',
  audience: 'AUTH_AUDIENCE',
  jwksUrl: 'AUTH_JWKS_URL',
  scope: 'AUTH_SCOPE',
  metricsScope: 'AUTH_SCOPE_METRICS',
};

const parseIntegerBetween =
  (min: number, max: number): Parse<number> =>
  (text) => {
    const number = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    return number >= min && number <= max ? number : undefined;
  };

/** An IPv6 address may have the brackets that it has in a URL. */
function parseHost(text: string): string | undefined {
  const host = text.replace(/^\[(.*:.*)\]$/, '$1');
  return /^[\w.:-]+$/.test(host) ? host : undefined;
}

const DURATION_UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000 };

/** @param shortest in milliseconds */
function parseDuration(text: string, shortest: number): number | undefined {
  const [, number, unit = 's'] = /^(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|m)?$/.exec(text) ?? [];
  const duration = Math.round(Number(number) * (DURATION_UNITS[unit] ?? NaN));
  // Node.js has no longer timers.
  return duration >= shortest && duration < 2 ** 31 ? duration : undefined;
}

const SIZE_UNITS: Record<string, number> = { '': 1, KiB: 2 ** 10, MiB: 2 ** 20 };

function parseSize(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d{1,9}) ?(KiB|MiB)?$/.exec(text) ?? [];
  const size = Number(number) * (SIZE_UNITS[unit] ?? NaN);
  // A string of V8 has at most about 2^29 characters.
  return size > 0 && size <= 256 * 2 ** 20 ? size : undefined;
}

/** In seconds. */
const WINDOWS: Record<string, number> = { s: 1, m: 60, h: 3600 };

function parseRate(text: string): RateLimitOptions | undefined {
  const [, number, unit = ''] = /^(\d{1,9}) ?\/ ?(s|m|h)$/.exec(text) ?? [];
  const quota = Number(number);
  return quota > 0 ? { quota, window: WINDOWS[unit] ?? NaN } : undefined;
}

/** The members of a list that commas or white space separate; undefined if there is none, or an invalid one. */
const parseList =
  (isValid: (member: string) => boolean): Parse<string[]> =>
  (text) => {
    const members = listOf(text);
    return members.length > 0 && members.every(isValid) ? members : undefined;
  };

function listOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((member) => member !== '');
}

/** Whether a text is an IP address, or a range of them such as `10.0.0.0/8`. */
function isRange(text: string): boolean {
  const [, address = '', bits = 1] = /^([^/]+)(?:\/([1-9]\d*))?$/.exec(text) ?? [];
  return isIP(address) > 0 && Number(bits) <= (isIP(address) === 4 ? 32 : 128);
}

/** Whether a text is an origin as browsers write it: never "null", which is everybody's, nor a wildcard. */
function isOrigin(text: string): boolean {
  return /^https?:[^*]+$/.test(text) && URL.parse(text)?.origin === text;
}

/** Returns the tokens as `sha256:HEX`, so that the settings hold no secret, with their scopes. */
function parseTokens(text: string | undefined): string[] {
  if (text === undefined) return [];
  const entries: string[] = [];
  for (const field of listOf(text)) {
    // A scope belongs to the token before it.
    if (field.startsWith('scope=') && entries.length > 0) entries.push(`${entries.pop()} ${field}`);
    else entries.push(field);
  }
  if (entries.length === 0) throw new Error('it has no token');
  return parseTokenList(entries).map(({ digest, scopes }) =>
    [formatTokenEntry(digest), ...formatScopes(scopes)].join(' '),
  );
}
