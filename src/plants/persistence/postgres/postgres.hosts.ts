import { type ClientBase, Pool, type PoolClient } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { inTime, LateError } from './with-timeout';
import { PoolExhaustedError, toOperatorError } from './postgres.errors';
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
  /** Pools of a host in which a connection is waited for that nobody wants any more. */
  private readonly hanging = new WeakSet<Pool>();
  /** Which sessions are known to take writes, by the election they were checked after. */
  private readonly checked = new WeakMap<ClientBase, number>();
  private elections = 0;
  /** Where the sessions of a host looked for the table at the start. */
  private searchPath: unknown;
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
      // Every session may have to be given up, as the host has left it.
      for (let spare = this.owned ? 0 : pool.options.max; ; spare--) {
        const client = await this.take(pool);
        // A lost connection fails the statement on it, and would end the process besides.
        if (!this.checked.has(client)) client.on('error', () => undefined);
        if (this.owned && this.checked.get(client) === this.elections) return client;
        try {
          await this.check(client);
          return client;
        } catch (error) {
          client.release(true);
          if (spare === 0 || isReadOnly(error)) throw error;
        }
      }
    } catch (error) {
      throw toOperatorError(name, innermost(error));
    }
  }

  /** A session of a pool, whose host may have set no time-out, or a long one. */
  private async take(pool: Pool): Promise<PoolClient> {
    if (this.owned) return pool.connect();
    // No more than one of the host's connections shall hang for us.
    if (this.hanging.has(pool)) throw silenceOf(pool);
    const taking = pool.connect();
    try {
      return await inTime(taking, CONNECT_TIMEOUT);
    } catch (error) {
      if (!(error instanceof LateError)) throw error;
      this.hanging.add(pool);
      const settled = (late?: PoolClient): void => {
        this.hanging.delete(pool);
        late?.release();
      };
      taking.then(settled, () => {
        settled();
      });
      throw silenceOf(pool);
    }
  }

  private async check(client: PoolClient): Promise<void> {
    const { elections } = this;
    this.checked.set(client, -1);
    const searchPath = await inTime(assertUsable(client), CONNECT_TIMEOUT);
    if (!this.owned && searchPath !== (this.searchPath ??= searchPath)) {
      throw new Error('search_path is not what it was at the start');
    }
    this.checked.set(client, elections);
  }
}

/** Why a pool hands out no session: who waits for a new connection is not in its queue. */
function silenceOf(pool: Pool): Error {
  return pool.waitingCount > 0 ? new PoolExhaustedError() : new LateError();
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
 * @returns the session's search_path
 * @throws Error when what is inserted in this session might not be kept, or not as it is
 */
async function assertUsable(client: ClientBase): Promise<unknown> {
  const { rows } = await client.query<Record<string, unknown>>(
    `SELECT current_setting('search_path') AS "searchPath", current_setting('transaction_read_only') = 'on' AS "readOnly",
            current_setting('synchronous_commit', true) = 'off' AS "unsynchronized",
            current_setting('client_encoding') <> 'UTF8' AS "reencoded",
            current_setting('client_min_messages') IN ('error', 'fatal', 'panic') AS "silenced",
            transaction_timestamp() <> statement_timestamp() AS "inTransaction"`,
  );
  const session = rows[0] ?? {};
  if (session.readOnly) {
    throw Object.assign(new Error('the server is a standby, or read-only'), { code: READ_ONLY });
  }
  for (const [setting, fault] of Object.entries(FAULTS)) {
    if (session[setting]) throw new Error(fault);
  }
  return session.searchPath;
}

const READ_ONLY = '25006';

/** What a session must not be, beside read-only. */
const FAULTS: Readonly<Record<string, string>> = {
  unsynchronized: 'synchronous_commit is off for this user, so that commits could be lost',
  reencoded: 'client_encoding is not UTF8',
  silenced: 'client_min_messages hides warnings, that of a commit which no standby has among them',
  inTransaction: 'the session is in a transaction',
};

function isReadOnly(error: unknown): boolean {
  return (error as { code?: unknown }).code === READ_ONLY;
}

/** Node tries each address of a name and reports them together, without a message. */
function innermost(error: unknown): unknown {
  return error instanceof AggregateError ? (error.errors[0] as unknown) : error;
}
