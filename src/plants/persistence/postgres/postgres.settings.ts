import type { ClientConfig, CustomTypesConfig, PoolConfig } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { isLoopback } from '../../http/loopback';
import { findUrlError, SEVERAL_HOSTS } from './postgres.url';

/** Milliseconds to open a session. */
const CONNECT_TIMEOUT = 2000;
/**
 * Milliseconds until a statement without an answer is abandoned and its session closed: less than the
 * deadline of a batch. TCP alone would take a quarter of an hour to notice a dead server.
 */
const STATEMENT_TIMEOUT = 8000;
/** Milliseconds before a TCP keep-alive probe. Firewalls forget a connection that is idle for minutes. */
const KEEP_ALIVE_DELAY = 10_000;

/** Keeps values as text: a host can replace the driver's parsers, and ids must stay exact all the same. */
const AS_TEXT = { getTypeParser: () => String } as unknown as CustomTypesConfig;

/**
 * Reads the settings of a pool, with the present content of the files that they name.
 *
 * @param where a connection URL, or settings of the driver, which win over those of their URL as far as
 *   they are defined
 * @throws Error when they are invalid, or a file cannot be read
 */
export function readSettings(where: string | ClientConfig): PoolConfig {
  const { connectionString: url, ...settings } =
    typeof where === 'string' ? { connectionString: where } : where;
  const fault = url === undefined ? undefined : findUrlError(url);
  if (fault !== undefined) throw new Error(`the URL ${fault}`);
  const defined = Object.entries<unknown>(settings).filter(([, value]) => value !== undefined);
  // In seconds, as for libpq.
  const config: ClientConfig & { connect_timeout?: string } = {
    fallback_application_name: 'plant-store',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY,
    ...(url !== undefined && toClientConfig(parse(url, { useLibpqCompat: true }))),
    ...Object.fromEntries(defined),
    // One statement at a time is sent, so pipelining has no use here and stays off.
    pipeline: false,
    types: AS_TEXT,
  };
  if (config.host?.includes(',')) throw new Error(`"host" ${SEVERAL_HOSTS}`);
  return {
    ...config,
    connectionTimeoutMillis:
      Number(config.connectionTimeoutMillis) ||
      Number(config.connect_timeout) * 1000 ||
      CONNECT_TIMEOUT,
    query_timeout: Math.min(Number(config.query_timeout) || Infinity, STATEMENT_TIMEOUT),
    // An idle session reports at once that the server has gone.
    idleTimeoutMillis: 0,
  };
}

/**
 * Whether sessions cross the network in plain text, and nobody has said that this is meant: the server
 * is another machine, and neither the URL nor the settings nor `PGSSLMODE` speak of TLS.
 */
export function lacksTls(where: string | ClientConfig): boolean {
  const { connectionString, host, ssl } =
    typeof where === 'string' ? { connectionString: where } : where;
  const url = URL.parse(connectionString ?? '');
  const parameters = url?.searchParams ?? new URLSearchParams();
  const isDecided = parameters.has('sslmode') || parameters.has('ssl');
  if (ssl !== undefined || isDecided || process.env.PGSSLMODE !== undefined) return false;
  const hosts = [host, parameters.get('host'), url?.hostname, process.env.PGHOST];
  const server = hosts.find(Boolean) ?? 'localhost';
  // A path is that of a Unix socket.
  return !isLoopback(server) && !decodeURIComponent(server).startsWith('/');
}
