import { checkServerIdentity, type ConnectionOptions } from 'node:tls';
import { Client, type ClientBase, type ClientConfig, type PoolConfig } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { OptionError } from '../../errors/operator.error';
import { isLoopback } from '../../environment';
import { PatientSocket } from './patient-socket';
import { findUrlError, parseUrl, SSL_MODES } from './postgres.url';

/** A connection URL, a function that returns the current one, or settings of the driver, which override their URL. */
export type PostgresLocation = string | (() => string) | ClientConfig;

const CONNECT_TIMEOUT_MS = 2000;
/** The maximum wait for a response: TCP takes a quarter of an hour to detect a dead server. A batch has 10 seconds. */
const RESPONSE_TIMEOUT_MS = 8000;

/**
 * Reads the settings of a pool, with the current content of the files that they name. Settings take
 * precedence over the URL, and both over the defaults.
 * @throws OptionError when the URL is invalid
 * @throws Error when a file cannot be read
 */
export function readPoolConfig(location: PostgresLocation): PoolConfig {
  const { connectionString: url, ...settings } = toObject(location);
  const config: UrlConfig = {
    fallback_application_name: 'plant-store',
    // Firewalls drop a session that is idle for minutes.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    ...(url !== undefined && readUrl(url)),
    ...settings,
  };
  const { PGSSLMODE: mode } = process.env;
  if (config.ssl === undefined && mode && !SSL_MODES.includes(mode)) {
    const modes = SSL_MODES.join(', ');
    const problem = `postgres has no sslmode, so PGSSLMODE counts, which must be one of these: ${modes}.`;
    throw new OptionError('postgres', problem);
  }
  const connectionTimeoutMillis = readConnectTimeout(config);
  return {
    // Before the settings, so that a `stream` of the host replaces it.
    stream: () => new PatientSocket(connectionTimeoutMillis),
    ...config,
    ...(typeof config.password === 'function' && { password: withErrors(config.password) }),
    // All results are text. Without this, the parsers that a host sets for all its sessions could change a plant.
    types: { getTypeParser: () => String },
    connectionTimeoutMillis,
    query_timeout: Math.min(Number(config.query_timeout) || Infinity, RESPONSE_TIMEOUT_MS),
    // Keep idle sessions open: they report at once that the server is unreachable.
    idleTimeoutMillis: 0,
  };
}

function readConnectTimeout(config: UrlConfig): number {
  // As in libpq, `connect_timeout` is in seconds.
  const fromUrl = Number(config.connect_timeout) * 1000;
  return Number(config.connectionTimeoutMillis) || fromUrl || CONNECT_TIMEOUT_MS;
}

/** Makes a function that returns the password throw an error in any case, because the driver's pool needs one. */
function withErrors(readPassword: () => string | Promise<string>): () => Promise<string> {
  return async () => {
    try {
      return await readPassword();
    } catch (cause) {
      throw cause instanceof Error ? cause : new Error(String(cause), { cause });
    }
  };
}

/** The settings that a URL contains. The driver does not know the last two. */
type UrlConfig = ClientConfig & { channel_binding?: string; connect_timeout?: string };

function readUrl(url: string): UrlConfig {
  const problem = findUrlError(url);
  if (problem !== undefined) throw new OptionError('postgres', problem);
  const config: UrlConfig = toClientConfig(parse(url, { useLibpqCompat: true }));
  const { channel_binding: binding = 'disable' } = config;
  // The driver cannot insist on channel binding. The certificate also excludes a server in between.
  const verification = { rejectUnauthorized: true, checkServerIdentity };
  if (binding === 'require') {
    config.ssl = { ...(config.ssl as ConnectionOptions), ...verification };
  }
  return { ...config, enableChannelBinding: binding !== 'disable' };
}

function toObject(location: PostgresLocation): ClientConfig {
  const current = typeof location === 'function' ? location() : location;
  return typeof current === 'string' ? { connectionString: current } : current;
}

/** Runs statements in a session of their own, and closes it. */
export async function withSession<T>(
  settings: PoolConfig,
  statements: (session: ClientBase) => Promise<T>,
): Promise<T> {
  const session = new Client(settings);
  // The loss of the session fails its statement. Without a listener, it would also end the process.
  session.on('error', () => undefined);
  try {
    await session.connect();
    return await statements(session);
  } finally {
    void session.end();
  }
}

/** Whether the server is another machine, and neither the URL nor the settings nor `PGSSLMODE` configure TLS. */
export function lacksTls(location: PostgresLocation): boolean {
  const { connectionString = '', host, ssl } = toObject(location);
  const { hostname, searchParams } = parseUrl(connectionString) ?? new URL('postgres:///');
  const { PGSSLMODE = '', PGHOST } = process.env;
  const isDecided =
    ssl !== undefined || searchParams.has('sslmode') || SSL_MODES.includes(PGSSLMODE);
  // In the order in which the driver takes them.
  const hosts = [host, searchParams.get('host'), hostname, PGHOST];
  const server = hosts.find(Boolean) ?? 'localhost';
  // A host that begins with / is the path of a Unix socket. As the host of a URL, the path is encoded.
  return !isDecided && !isLoopback(server) && !/^(?:\/|%2f)/i.test(server);
}
