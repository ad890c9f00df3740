import {
  isAuthConfigured,
  OperatorError,
  OptionError,
  type ServiceAuthOptions,
  validateAuthOptions,
} from '../plants/program';
import { DEFAULT_DATABASE, type DatabaseSettings, readDatabase } from './database.settings';
import type { RateLimitOptions } from './rate-limit.guard';
import type { TlsFiles } from './tls';
import { findMisspelled, readVariables, type Values } from './variables';

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
  let database: DatabaseSettings = DEFAULT_DATABASE;
  try {
    database = readDatabase(environment);
  } catch (error) {
    faults.push((error as Error).message);
  }
  const settings: Settings = {
    host: values.HOST,
    port: values.PORT,
    healthPort: values.HEALTH_PORT,
    database,
    auth: {
      tokens: values.AUTH_TOKENS,
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
    warnings: findMisspelled(environment, faults),
  };
  faults.push(...validateAuthOptions(settings.auth, AUTH_VARIABLES));
  faults.push(...findContradictions(values));
  if (values.NODE_ENV === 'production' && !isAuthConfigured(settings.auth)) {
    // An invalid AUTH_TOKENS has been reported already.
    if (!environment.AUTH_TOKENS?.trim()) faults.push(NO_TOKENS);
  }
  if (faults.length > 0) throw new OperatorError(faults.join('\n'));
  return Object.freeze(settings);
}

/** Rules that several variables must keep together. */
function findContradictions(values: Values): string[] {
  const faults: string[] = [];
  if (!values.TLS_CERT !== !values.TLS_KEY) {
    faults.push('TLS_CERT and TLS_KEY must both be set, or neither');
  }
  if (values.HEADERS_TIMEOUT > values.REQUEST_TIMEOUT) {
    faults.push('HEADERS_TIMEOUT must not be longer than REQUEST_TIMEOUT');
  }
  if (values.SHUTDOWN_GRACE >= values.SHUTDOWN_TIMEOUT) {
    faults.push('SHUTDOWN_GRACE must be shorter than SHUTDOWN_TIMEOUT');
  }
  return faults;
}

const NO_TOKENS =
  'AUTH_TOKENS, AUTH_TOKENS_FILE or AUTH_ISSUER must be set when NODE_ENV is production';

/** The variables that set options of the module. */
const AUTH_VARIABLES = {
  issuer: 'AUTH_ISSUER',
  audience: 'AUTH_AUDIENCE',
  jwksUrl: 'AUTH_JWKS_URL',
  scope: 'AUTH_SCOPE',
  metricsScope: 'AUTH_SCOPE_METRICS',
};
const VARIABLE_OF: Partial<Record<string, string>> = {
  sqlite: 'DATABASE_URL',
  postgres: 'DATABASE_URL',
  'auth.tokensFile': 'AUTH_TOKENS_FILE',
};

/** What an operator is shown of an error: a sentence, or all of an error of the program. */
export function describeForOperator(error: unknown): unknown {
  if (error instanceof OptionError) {
    return error.sentence.replace(/\.$/, ` (${VARIABLE_OF[error.option] ?? error.option}).`);
  }
  if (error instanceof OperatorError) return error.message;
  // An error of the operating system or of SQLite says enough by itself.
  const isOutside = error instanceof Error && ('syscall' in error || 'errcode' in error);
  return isOutside ? error.message : error;
}
