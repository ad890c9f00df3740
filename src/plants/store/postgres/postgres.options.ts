import type { Duplex } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';

/**
 * Client settings of the `pg` driver, declared here so that a host need not install its types. Times are in
 * milliseconds.
 */
export interface PostgresOptions {
  /** A connection URL. The other settings override it. */
  readonly connectionString?: string;
  /** A single host, or the directory of a Unix socket. */
  readonly host?: string;
  readonly port?: number;
  readonly database?: string;
  readonly user?: string;
  /** A function is called for each new session. */
  readonly password?: string | (() => string | Promise<string>);
  readonly ssl?: boolean | ConnectionOptions;
  readonly sslnegotiation?: 'postgres' | 'direct';
  readonly enableChannelBinding?: boolean;
  readonly stream?: () => Duplex | undefined;
  readonly keepAlive?: boolean;
  readonly keepAliveInitialDelayMillis?: number;
  /** @default 2000 */
  readonly connectionTimeoutMillis?: number;
  /**
   * A create request that exceeds it gets 503 (50300). At most 7000.
   * @default 7000
   */
  readonly statement_timeout?: false | number;
  /**
   * A create request that exceeds it gets 504 (50400). At most 8000.
   * @default 8000
   */
  readonly query_timeout?: number;
  /**
   * A create request that exceeds it gets 503 (50300). At most 1000.
   * @default 1000
   */
  readonly lock_timeout?: number;
  readonly idle_in_transaction_session_timeout?: number;
  readonly application_name?: string;
  readonly fallback_application_name?: string;
  readonly client_encoding?: string;
  readonly options?: string;
}
