import { type ClientBase, Pool, type PoolClient } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { inTime } from './in-time';
import { toOperatorError } from './postgres.errors';
import { urlPerHost } from './postgres.url';

/** Milliseconds to get a connection that is ready for use; `connect_timeout` in the URL, in seconds. */
const CONNECT_TIMEOUT = 2000;

/** Milliseconds that closing waits for connections that are in use. */
const CLOSE_TIMEOUT = 1000;

/**
 * Milliseconds of silence after which the system asks the other side whether it is there: sooner than
 * a firewall forgets a connection, which would swallow the next batch.
 */
const KEEP_ALIVE_DELAY = 10_000;

interface Host {
  readonly pool: Pool;
  /** What to call it in a log. */
  readonly name: string;
}

/** The hosts of a PostgreSQL cluster, of which one at a time takes writes. */
export class PostgresHosts {
  private current: Host;
  /** Which sessions are known to take writes, by the election they were checked after. */
  private readonly checked = new WeakMap<ClientBase, number>();
  private elections = 0;
  private readonly listeners = new Map<Host, (error: Error) => void>();

  /**
   * @param hosts at least one
   * @param owned whether the pools are ours to close
   * @param onLost told when a connection to the host in use is lost while nobody uses it
   */
  private constructor(
    private readonly hosts: readonly [Host, ...Host[]],
    private readonly owned: boolean,
    onLost: (error: Error) => void,
  ) {
    this.current = hosts[0];
    for (const host of hosts) {
      this.listeners.set(host, (error) => {
        if (host !== this.current) return;
        // Not the error itself: the driver puts the whole connection on it, for a log to spell out.
        onLost(new Error(toOperatorError(host.name, error).message));
      });
    }
    for (const [{ pool }, listener] of this.listeners) pool.on('error', listener);
  }

  /**
   * @param where a connection URL, or the pool of a host program, which stays the one to close it
   * @throws Error when the URL cannot be used
   */
  static of(where: string | Pool, onLost: (error: Error) => void): PostgresHosts {
    if (typeof where !== 'string') {
      return new PostgresHosts([{ pool: where, name: 'PostgreSQL' }], false, onLost);
    }
    const [first, ...others] = (urlPerHost(where) ?? []).map(makeHost);
    if (!first) throw new Error('it is not a PostgreSQL URL that the store supports');
    return new PostgresHosts([first, ...others], true, onLost);
  }

  /** The name of the host in use. */
  get name(): string {
    return this.current.name;
  }

  /**
   * Finds the host that takes writes and uses it from now on. Every connection is looked at again
   * before its next use.
   *
   * @throws Error when there is none, with the reason of each
   */
  async elect(): Promise<void> {
    this.elections++;
    try {
      this.current = await Promise.any(this.hosts.map((host) => this.tryHost(host)));
    } catch (error) {
      const reasons = (error as AggregateError).errors as Error[];
      throw new Error(reasons.map(({ message }) => message).join(' '), { cause: error });
    }
  }

  /**
   * A session on the host in use, for the caller to release.
   *
   * @throws Error when there is none; nothing was asked of the server then
   */
  connect(): Promise<PoolClient> {
    return this.connectTo(this.current);
  }

  /** Closes all connections; those in use, once they are released, for which it waits a moment. */
  async close(): Promise<void> {
    for (const [{ pool }, listener] of this.listeners) {
      pool.off('error', listener);
      // A server that goes at the same time would end the process.
      if (this.owned) pool.on('error', () => undefined);
    }
    const open = this.hosts.filter(({ pool }) => this.owned && !pool.ending);
    const closed = Promise.all(open.map(({ pool }) => pool.end()));
    await inTime(closed, CLOSE_TIMEOUT).catch(() => undefined);
  }

  private async tryHost(host: Host): Promise<Host> {
    const client = await this.connectTo(host);
    client.release();
    return host;
  }

  private async connectTo({ pool, name }: Host): Promise<PoolClient> {
    try {
      const client = await connectIdle(pool);
      // A lost connection fails the statement on it, and would end the process besides.
      if (!this.checked.has(client)) client.on('error', () => undefined);
      if (this.checked.get(client) !== this.elections) await this.check(client);
      return client;
    } catch (error) {
      throw toOperatorError(name, innermost(error));
    }
  }

  private async check(client: PoolClient): Promise<void> {
    const { elections } = this;
    this.checked.set(client, -1);
    try {
      await inTime(assertWritable(client), CONNECT_TIMEOUT);
    } catch (error) {
      client.release(true);
      throw error;
    }
    this.checked.set(client, elections);
  }
}

function makeHost(url: string): Host {
  const parsed = parse(url, { useLibpqCompat: true });
  const { connect_timeout: timeoutInSeconds, ...config } = toClientConfig(parsed) as ReturnType<
    typeof toClientConfig
  > & { connect_timeout?: string };
  const pool = new Pool({
    fallback_application_name: 'plant-store',
    ...config,
    connectionTimeoutMillis: Number(timeoutInSeconds) * 1000 || CONNECT_TIMEOUT,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY,
    // A connection that is kept tells at once when the server goes.
    idleTimeoutMillis: 0,
  });
  const { host = 'localhost', port = 5432, database = '' } = config;
  return { pool, name: `PostgreSQL at ${host || 'localhost'}:${port}/${database}` };
}

/**
 * A session in no transaction: a host may have left one open in a session that it gave back to its
 * pool, and what is inserted in that is not committed.
 */
async function connectIdle(pool: Pool): Promise<PoolClient> {
  for (;;) {
    const client = await connectInTime(pool);
    if (!isInTransaction(client)) return client;
    client.release(true);
  }
}

/** Whether a session is in a transaction, as far as the driver has heard. */
export function isInTransaction(client: ClientBase): boolean {
  // The driver of a host may be of an older release, which does not tell.
  const status = 'getTransactionStatus' in client ? client.getTransactionStatus() : null;
  return status !== null && status !== 'I';
}

/** The pool of a host may wait for ever. */
async function connectInTime(pool: Pool): Promise<PoolClient> {
  const connecting = pool.connect();
  if (pool.options.connectionTimeoutMillis) return connecting;
  try {
    return await inTime(connecting, CONNECT_TIMEOUT);
  } catch (error) {
    const giveBack = (late: PoolClient): void => {
      late.release();
    };
    connecting.then(giveBack, () => undefined);
    throw error;
  }
}

/** @throws Error when what is committed in this session would not be kept */
async function assertWritable(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ readOnly: string; synchronousCommit: string | null }>(
    `SELECT current_setting('transaction_read_only') AS "readOnly",
            current_setting('synchronous_commit', true) AS "synchronousCommit"`,
  );
  if (rows[0]?.readOnly === 'on') {
    throw Object.assign(new Error('the server is a standby, or read-only'), { code: '25006' });
  }
  if (rows[0]?.synchronousCommit === 'off') {
    throw new Error('synchronous_commit is off for this user, so that commits could be lost');
  }
}

/** Node tries each address of a name and reports them together, without a message. */
function innermost(error: unknown): unknown {
  return error instanceof AggregateError ? (error.errors[0] as unknown) : error;
}
