import {
  isAuthConfigured,
  OperatorError,
  type ServiceAuthOptions,
  validateAuthOptions,
} from '../plants/program';
import { DEFAULT_DATABASE, type DatabaseSettings, readDatabase } from './database.settings';
import type { RateLimitOptions } from './rate-limit.guard';
import type { TlsFiles } from './tls';
import { parseTokens } from './variable-parsers';
import { describeMisspelled, describeUnknownAuth, readVariables, type Values } from './variables';

/** The settings of the standalone service. Durations are in milliseconds, sizes in bytes. */
export interface Settings {
  /** A host name or an IP address to listen on. */
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** For health and metrics too; undefined for no such port. */
  readonly healthPort: number | undefined;
  readonly database: DatabaseSettings;
  /** Its tokens are digests. */
  readonly auth: ServiceAuthOptions;
  /** Undefined for HTTP. */
  readonly tls: TlsFiles | undefined;
  readonly bodyLimit: number;
  /** Of the header section of a request, request line included. */
  readonly headersLimit: number;
  /** Connections open at the same time. */
  readonly maxConnections: number;
  /** None for no CORS. */
  readonly corsOrigins: readonly string[];
  /** The limit for each caller; undefined for none. */
  readonly rateLimit: RateLimitOptions | undefined;
  readonly headersTimeout: number;
  readonly requestTimeout: number;
  readonly keepAliveTimeout: number;
  /** How long the service reports not ready, but still serves, before it closes. */
  readonly shutdownGrace: number;
  /** The limit for the whole shutdown, the grace included. */
  readonly shutdownTimeout: number;
  readonly logLevel: string;
  readonly accessLog: boolean;
  /** Addresses and ranges of proxies whose `X-Forwarded-For` the access log believes. */
  readonly trustedProxies: readonly string[];
  readonly docs: boolean;
  /** Warnings about the environment, for the log: one sentence each. */
  readonly warnings: readonly string[];
}

/**
 * Reads the settings from an environment. An empty variable counts as not set.
 *
 * @throws OperatorError when any variable is invalid; the message never shows a secret
 */
export function readEnvironment(environment: NodeJS.ProcessEnv): Settings {
  const faults: string[] = [];
  const values = readVariables(environment, faults);
  const settings: Settings = {
    host: values.HOST,
    port: values.PORT,
    healthPort: values.HEALTH_PORT,
    database: attempt(faults, '', DEFAULT_DATABASE, () => readDatabase(environment)),
    auth: {
      tokens: attempt(faults, 'AUTH_TOKENS: ', [], () => parseTokens(values.AUTH_TOKENS)),
      tokensFile: values.AUTH_TOKENS_FILE,
      issuer: values.AUTH_ISSUER,
      audience: values.AUTH_AUDIENCE?.split(/\s+/),
      jwksUrl: values.AUTH_JWKS_URL,
      scope: values.AUTH_SCOPE,
      metricsScope: values.AUTH_SCOPE_METRICS,
    },
    tls:
      values.TLS_CERT !== undefined && values.TLS_KEY !== undefined
        ? { certificate: values.TLS_CERT, key: values.TLS_KEY }
        : undefined,
    bodyLimit: values.BODY_LIMIT,
    headersLimit: values.HEADERS_LIMIT,
    maxConnections: values.MAX_CONNECTIONS,
    corsOrigins: values.CORS_ORIGINS,
    rateLimit: values.RATE_LIMIT,
    headersTimeout: values.HEADERS_TIMEOUT,
    requestTimeout: values.REQUEST_TIMEOUT,
    keepAliveTimeout: values.KEEP_ALIVE_TIMEOUT,
    shutdownGrace: values.SHUTDOWN_GRACE,
    shutdownTimeout: values.SHUTDOWN_TIMEOUT,
    logLevel: values.LOG_LEVEL,
    accessLog: values.ACCESS_LOG,
    trustedProxies: values.TRUSTED_PROXIES,
    docs: values.DOCS,
    warnings: describeMisspelled(environment),
  };
  faults.push(...findContradictions(settings, values));
  faults.push(...validateAuthOptions(settings.auth, AUTH_VARIABLES));
  faults.push(...describeUnknownAuth(environment));
  if (faults.length > 0) throw new OperatorError(faults.join('\n'));
  return Object.freeze(settings);
}

/** Rules that several variables must keep together. */
function findContradictions(settings: Settings, values: Values): string[] {
  // An invalid AUTH_TOKENS has been reported already.
  const hasTokens = isAuthConfigured(settings.auth) || values.AUTH_TOKENS !== undefined;
  const rules: [isBroken: boolean, message: string][] = [
    [!values.TLS_CERT !== !values.TLS_KEY, 'TLS_CERT and TLS_KEY must both be set, or neither'],
    [
      settings.headersTimeout > settings.requestTimeout,
      'HEADERS_TIMEOUT must not be longer than REQUEST_TIMEOUT',
    ],
    [
      settings.shutdownGrace >= settings.shutdownTimeout,
      'SHUTDOWN_GRACE must be shorter than SHUTDOWN_TIMEOUT',
    ],
    [
      values.NODE_ENV === 'production' && !hasTokens,
      'AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production',
    ],
  ];
  return rules.filter(([isBroken]) => isBroken).map(([, message]) => message);
}

/** What a function returns; or the fallback, with a fault, when it throws. */
function attempt<T>(faults: string[], prefix: string, fallback: T, find: () => T): T {
  try {
    return find();
  } catch (error) {
    faults.push(prefix + (error as Error).message);
    return fallback;
  }
}

const AUTH_VARIABLES = {
  issuer: 'AUTH_ISSUER',
  audience: 'AUTH_AUDIENCE',
  jwksUrl: 'AUTH_JWKS_URL',
  scope: 'AUTH_SCOPE',
  metricsScope: 'AUTH_SCOPE_METRICS',
};
