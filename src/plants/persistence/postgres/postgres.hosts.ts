import { setTimeout } from 'node:timers/promises';
import type { ClientBase, ClientConfig, CustomTypesConfig, PoolClient } from 'pg';
import { Client, Pool } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { isOutOfResources, toOperatorError } from './postgres.errors';
import { describeUnknownParameter, urlPerHost } from './postgres.url';
import { withTimeout } from './with-timeout';

/** Milliseconds to open a session, and again to check it. */
const CONNECT_TIMEOUT = 2000;
/** Milliseconds until a host is asked again, while another one has not answered. */
const ASK_AGAIN = 250;
/** Milliseconds for which the host that is preferred may be slower than another one to answer. */
const PREFERENCE = 500;
/** Milliseconds that closing waits for sessions in use. */
const CLOSE_TIMEOUT = 1000;
/** Milliseconds before a TCP keep-alive probe. Firewalls forget a connection that is idle for minutes. */
const KEEP_ALIVE_DELAY = 10_000;

/** Keeps values as text: a host can replace the driver's parsers, and ids must stay exact all the same. */
const AS_TEXT = { getTypeParser: () => String } as unknown as CustomTypesConfig;

interface Host {
  readonly pool: Pool;
  readonly name: string;
}

/** The hosts of a PostgreSQL cluster. One of them is in use: one that accepts writes. */
export class PostgresHosts {
  private readonly hosts: readonly Host[];
  private current: Host;
  /** How many searches for a writable host there were, and were when the host in use was selected. */
  private searches = 0;
  private electedBy = 0;
  /** When the host in use last answered a check, on the clock of `performance.now()`. */
  heardAt = 0;
  /** How many there were when a session was last checked. */
  private readonly checked = new WeakMap<ClientBase, number>();

  /**
   * @param where a connection URL, or settings of the driver, whose `connectionString` may be one
   * @param onLost called when an idle session on the host in use is lost
   * @param checkStore rejects when a session is in another store than before
   * @throws Error when the URL or the settings are invalid
   */
  constructor(
    where: string | ClientConfig,
    onLost: (error: Error) => void,
    private readonly checkStore: (session: PoolClient) => Promise<void> = () => Promise.resolve(),
  ) {
    const [first, ...others] = makeHosts(where);
    this.current = first;
    this.hosts = [first, ...others];
    for (const host of this.hosts) {
      host.pool.on('error', (error, session) => {
        if (host !== this.current || !this.isCurrent(session)) return;
        // A new error: the driver attaches its client to the original, and a log would print it.
        onLost(new Error(toOperatorError(host.name, error).message));
      });
    }
  }

  /** Of all hosts. */
  get names(): string {
    return this.hosts.map(({ name }) => name).join(', ');
  }

  /** Of the host in use. */
  get name(): string {
    return this.current.name;
  }

  /** Whether a session is from after the host in use was selected, and so says something about it. */
  isCurrent(session: ClientBase): boolean {
    return (this.checked.get(session) ?? 0) >= this.electedBy;
  }

  /**
   * Uses a host that turns out to accept writes: the one in use, if it answers in time, or else the
   * first. Each session is checked again before its next use.
   *
   * @param prefersOthers whether to use another host if there is one
   * @throws Error when there is none, with the reason for each host
   */
  async selectWritable(prefersOthers = false): Promise<void> {
    this.searches++;
    const host = await this.findWritable(prefersOthers);
    if (host === this.current) return;
    this.current = host;
    // All sessions are from before, those too that were checked in this search.
    this.electedBy = ++this.searches;
  }

  /**
   * Takes a session on the host in use. The caller releases it.
   *
   * @throws Error when there is none; no statement of the caller was sent then
   */
  async connect(): Promise<PoolClient> {
    for (;;) {
      const host = this.current;
      try {
        const session = await this.connectTo(host);
        if (host === this.current) return session;
        session.release();
      } catch (error) {
        if (host === this.current) throw error;
      }
    }
  }

  /** Waits a moment for sessions in use. */
  async close(): Promise<void> {
    for (const { pool } of this.hosts) {
      // A session lost from now on is no fault. Without a listener it would end the process.
      pool.removeAllListeners('error').on('error', () => undefined);
    }
    const closed = Promise.all(this.hosts.map(({ pool }) => pool.end()));
    await withTimeout(closed, CLOSE_TIMEOUT).catch(() => undefined);
  }

  /** Rejects once every host has refused. Until then one that refused at once is asked again. */
  private async findWritable(prefersOthers: boolean): Promise<Host> {
    const refusals = new Map<Host, Error>();
    let isOver = false;
    const ask = async (host: Host): Promise<Host> => {
      for (;;) {
        try {
          (await this.connectTo(host)).release();
          return host;
        } catch (error) {
          refusals.set(host, error as Error);
          if (isOver || refusals.size === this.hosts.length) throw error;
          await wait(ASK_AGAIN);
        }
      }
    };
    const asked = this.hosts.map((host) => ({ host, answer: ask(host) }));
    try {
      const first = await Promise.any(asked.map(({ answer }) => answer));
      const preferred = asked.filter(
        ({ host }) => (host === this.current) !== prefersOthers && !refusals.has(host),
      );
      const better = Promise.any(preferred.map(({ answer }) => answer)).catch(() => first);
      return (await Promise.race([better, wait(PREFERENCE)])) ?? first;
    } catch (cause) {
      const reasons = this.hosts.map((host) => refusals.get(host)?.message);
      throw new Error(reasons.join(' '), { cause });
    } finally {
      isOver = true;
    }
  }

  private async connectTo(host: Host): Promise<PoolClient> {
    try {
      const session = await host.pool.connect();
      if (this.checked.get(session) !== this.searches) await this.check(session, host);
      return session;
    } catch (error) {
      // Having no room is an answer too.
      if (isOutOfResources(error)) this.noteAnswer(host);
      throw toOperatorError(host.name, firstCause(error));
    }
  }

  private async check(session: PoolClient, host: Host): Promise<void> {
    const { searches } = this;
    const isChecked = assertUsable(session).then(() => this.checkStore(session));
    try {
      await withTimeout(isChecked, CONNECT_TIMEOUT);
    } catch (error) {
      session.release(true);
      throw error;
    }
    this.checked.set(session, searches);
    this.noteAnswer(host);
  }

  private noteAnswer(host: Host): void {
    if (host === this.current) this.heardAt = performance.now();
  }
}

/**
 * The driver leaves the socket open when a password function fails or a certificate is invalid.
 * Retries would use up the connection slots of the server, which waits a minute for each.
 */
class ClosingClient extends Client {
  override connect(): Promise<Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<Client> | undefined {
    if (callback === undefined) return super.connect();
    super.connect((error: Error) => {
      // Null after a success, which the driver's types leave out.
      if (error as Error | null) void this.end();
      callback(error);
    });
    return undefined;
  }
}

function makeHosts(where: string | ClientConfig): [Host, ...Host[]] {
  const { connectionString, ...settings } =
    typeof where === 'string' ? { connectionString: where } : where;
  if (connectionString === undefined) return [makeHost(settings)];
  const urls = urlPerHost(connectionString) ?? [];
  const [first, ...others] = urls.map((url) => makeHost(settings, readUrl(url)));
  if (first) return [first, ...others];
  const fault = describeUnknownParameter(connectionString);
  throw new Error(
    `the URL ${fault ?? 'must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, and sslmode, if set, must be disable, require, verify-ca or verify-full'}`,
  );
}

/** @param settings win over those of the URL, as far as they are defined */
function makeHost(settings: ClientConfig, urlSettings: ClientConfig = {}): Host {
  const defined = Object.entries(settings).filter(([, value]) => value !== undefined);
  const config: ClientConfig = {
    fallback_application_name: 'plant-store',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY,
    ...urlSettings,
    ...Object.fromEntries(defined),
    // Sends one statement at a time, so pipelining has no use here and stays off.
    pipeline: false,
    types: AS_TEXT,
  };
  const pool = new Pool({
    ...config,
    connectionTimeoutMillis: Number(config.connectionTimeoutMillis) || CONNECT_TIMEOUT,
    // An idle session reports at once that the server has gone.
    idleTimeoutMillis: 0,
    Client: ClosingClient,
  });
  // A lost session fails its statement. Without a listener it would also end the process.
  pool.on('connect', (session) => session.on('error', () => undefined));
  // The driver fills in its defaults and the PG* variables. A `stream` may be one that connects.
  const { host, port, database = '' } = new Client({ ...config, stream: undefined });
  return { pool, name: `PostgreSQL at ${host}:${port}/${database}` };
}

/** `connect_timeout` is in seconds, as for libpq. */
function readUrl(url: string): ClientConfig {
  const { connect_timeout: timeoutInSeconds, ...config } = toClientConfig(
    parse(url, { useLibpqCompat: true }),
  ) as ClientConfig & { connect_timeout?: string };
  return { ...config, connectionTimeoutMillis: Number(timeoutInSeconds) * 1000 };
}

/**
 * The settings of a role, a database or the URL apply to our sessions too.
 *
 * @throws Error when plants inserted in this session could be refused or lost
 */
async function assertUsable(session: PoolClient): Promise<void> {
  const { rows } = await session.query<Partial<Record<string, string>>>(
    `SELECT current_setting('transaction_read_only') AS read_only,
            current_setting('synchronous_commit', true) AS synchronous_commit,
            current_setting('client_min_messages') AS client_min_messages`,
  );
  const [{ read_only, synchronous_commit, client_min_messages = '' } = {}] = rows;
  if (read_only === 'on') {
    throw Object.assign(new Error('the server is a standby, or read-only'), { code: '25006' });
  }
  if (synchronous_commit === 'off') {
    throw new Error(
      'synchronous_commit is off for this user, so a crash could lose commits: set it to on',
    );
  }
  if (['error', 'fatal', 'panic'].includes(client_min_messages)) {
    throw new Error(
      'client_min_messages hides the warning about a commit that was not replicated: set it to warning',
    );
  }
}

function wait(milliseconds: number): Promise<void> {
  return setTimeout(milliseconds, undefined, { ref: false });
}

/** Node tries each address of a host name and reports all failures together, without a message. */
function firstCause(error: unknown): unknown {
  return error instanceof AggregateError ? (error.errors[0] as unknown) : error;
}
