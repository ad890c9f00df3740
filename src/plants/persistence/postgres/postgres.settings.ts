import {
  Client,
  type ClientBase,
  type ClientConfig,
  type CustomTypesConfig,
  type PoolConfig,
} from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { isLoopback } from '../../loopback';
import { findUrlError, parseUrl, SEVERAL_HOSTS_PROBLEM } from './postgres.url';

/** The maximum time to open a session. */
const CONNECT_TIMEOUT_MS = 2000;
/**
 * How long a statement may go without a response before it is abandoned and its session is closed. It is
 * shorter than the time limit of a batch. TCP alone would take a quarter of an hour to detect a dead server.
 */
const STATEMENT_TIMEOUT_MS = 8000;
/** Idle time before a TCP keep-alive probe. Firewalls drop a connection that is idle for minutes. */
const KEEP_ALIVE_DELAY_MS = 10_000;

/** Keeps values as strings. Ids stay exact even if a host replaces the parsers of the driver. */
const STRING_TYPES = { getTypeParser: () => String } as unknown as CustomTypesConfig;

/**
 * Reads the settings of a pool, with the current content of the files that they name.
 *
 * @param connection a connection URL, or settings of the driver, which override those of their URL where
 *   defined
 * @throws Error when the settings are invalid, or a file cannot be read
 */
export function readSettings(connection: string | ClientConfig): PoolConfig {
  const { connectionString: url, ...settings } =
    typeof connection === 'string' ? { connectionString: connection } : connection;
  const problem = url === undefined ? undefined : findUrlError(url);
  if (problem !== undefined) throw new Error(`the URL ${problem}`);
  const defined = Object.entries<unknown>(settings).filter(([, value]) => value !== undefined);
  // As in libpq, `connect_timeout` is in seconds.
  const config: ClientConfig & { connect_timeout?: string } = {
    fallback_application_name: 'plant-store',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    ...(url !== undefined && toClientConfig(parse(url, { useLibpqCompat: true }))),
    ...Object.fromEntries(defined),
    // One statement at a time is sent, so pipelining has no use here and stays off.
    pipeline: false,
    types: STRING_TYPES,
  };
  if (config.host?.includes(',')) throw new Error(`"host" ${SEVERAL_HOSTS_PROBLEM}`);
  return {
    ...config,
    connectionTimeoutMillis:
      Number(config.connectionTimeoutMillis) ||
      Number(config.connect_timeout) * 1000 ||
      CONNECT_TIMEOUT_MS,
    query_timeout: Math.min(Number(config.query_timeout) || Infinity, STATEMENT_TIMEOUT_MS),
    // Keep idle sessions open: they report at once that the server is unreachable.
    idleTimeoutMillis: 0,
  };
}

/** Describes for an operator the server and the database that settings lead to. */
export function describeServer(settings: PoolConfig): string {
  // The driver fills in its defaults and the PG* variables. Omit `stream`, which may connect.
  const { host, port, database } = new Client({ ...settings, stream: undefined });
  return `PostgreSQL at ${host}:${port}/${database ?? ''}`;
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

/**
 * Whether connections are unencrypted and this was not chosen explicitly: the server is another machine, and
 * neither the URL nor the settings nor `PGSSLMODE` configure TLS.
 */
export function lacksTls(connection: string | ClientConfig): boolean {
  const { connectionString, host, ssl } =
    typeof connection === 'string' ? { connectionString: connection } : connection;
  const url = parseUrl(connectionString ?? '');
  const parameters = url?.searchParams ?? new URLSearchParams();
  const isDecided = parameters.has('sslmode') || parameters.has('ssl');
  if (ssl !== undefined || isDecided || process.env.PGSSLMODE !== undefined) return false;
  const hosts = [host, parameters.get('host'), url?.hostname, process.env.PGHOST];
  const server = hosts.find(Boolean) ?? 'localhost';
  // A host that begins with / is the path of a Unix socket.
  return !isLoopback(server) && !decodeURIComponent(server).startsWith('/');
}
