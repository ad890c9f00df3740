import type { ClientConfig, CustomTypesConfig, PoolConfig } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { isLoopback } from '../../loopback';
import { findUrlError, SEVERAL_HOSTS_PROBLEM } from './postgres.url';

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

/**
 * Whether connections are unencrypted and this was not chosen explicitly: the server is another machine, and
 * neither the URL nor the settings nor `PGSSLMODE` configure TLS.
 */
export function lacksTls(connection: string | ClientConfig): boolean {
  const { connectionString, host, ssl } =
    typeof connection === 'string' ? { connectionString: connection } : connection;
  const url = URL.parse(connectionString ?? '');
  const parameters = url?.searchParams ?? new URLSearchParams();
  const isDecided = parameters.has('sslmode') || parameters.has('ssl');
  if (ssl !== undefined || isDecided || process.env.PGSSLMODE !== undefined) return false;
  const hosts = [host, parameters.get('host'), url?.hostname, process.env.PGHOST];
  const server = hosts.find(Boolean) ?? 'localhost';
  // A host that begins with / is the path of a Unix socket.
  return !isLoopback(server) && !decodeURIComponent(server).startsWith('/');
}
