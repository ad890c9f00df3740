import { setTimeout } from 'node:timers/promises';
import { type ClientBase, Pool, type PoolClient } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { toOperatorError } from './postgres.errors';
import { urlPerHost } from './postgres.url';

/** Milliseconds to get a connection that is ready for use; `connect_timeout` in the URL, in seconds. */
const CONNECT_TIMEOUT = 2000;

/**
 * Milliseconds after which a statement is given up with its connection: the server may have vanished
 * without a word, and the socket would notice in a quarter of an hour. The server is not told.
 */
const STATEMENT_TIMEOUT = 30_000;

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

  /**
   * @param hosts at least one
   * @param owned whether the pools are ours to close
   * @param onLost told when a connection is lost that nobody uses
   */
  private constructor(
    private readonly hosts: readonly [Host, ...Host[]],
    private readonly owned: boolean,
    private readonly onLost: (error: Error) => void,
  ) {
    this.current = hosts[0];
    for (const { pool } of hosts) pool.on('error', this.onPoolError);
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

  /** Closes all connections, once they are released. */
  async close(): Promise<void> {
    for (const { pool } of this.hosts) {
      pool.off('error', this.onPoolError);
      // A server that goes at the same time would end the process.
      if (this.owned) pool.on('error', () => undefined);
    }
    const open = this.hosts.filter(({ pool }) => this.owned && !pool.ending);
    await Promise.all(open.map(({ pool }) => pool.end()));
  }

  private readonly onPoolError = (error: Error): void => {
    // Not the error itself: the driver puts the whole connection on it, for a log to spell out.
    this.onLost(new Error(toOperatorError(this.name, error).message));
  };

  private async tryHost(host: Host): Promise<Host> {
    const client = await this.connectTo(host);
    client.release();
    return host;
  }

  private async connectTo({ pool, name }: Host): Promise<PoolClient> {
    try {
      const client = await pool.connect();
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
      await Promise.race([assertWritable(client), timeout(CONNECT_TIMEOUT)]);
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
    query_timeout: STATEMENT_TIMEOUT,
    ...config,
    connectionTimeoutMillis: Number(timeoutInSeconds) * 1000 || CONNECT_TIMEOUT,
    keepAlive: true,
    // A connection that is kept tells at once when the server goes.
    idleTimeoutMillis: 0,
  });
  const { host = 'localhost', port = 5432, database = '' } = config;
  return { pool, name: `PostgreSQL at ${host || 'localhost'}:${port}/${database}` };
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

async function timeout(milliseconds: number): Promise<never> {
  await setTimeout(milliseconds, undefined, { ref: false });
  throw new Error('no answer in time');
}

/** Node tries each address of a name and reports them together, without a message. */
function innermost(error: unknown): unknown {
  return error instanceof AggregateError ? (error.errors[0] as unknown) : error;
}
