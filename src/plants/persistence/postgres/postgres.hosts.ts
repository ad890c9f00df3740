import { setTimeout } from 'node:timers/promises';
import type { ClientBase, ClientConfig, CustomTypesConfig, PoolClient, PoolConfig } from 'pg';
import { Client, Pool } from 'pg';
import { parse, toClientConfig } from 'pg-connection-string';
import { isOutOfResources, toOperatorError } from './postgres.errors';
import { describeDifference, hasStore, readSchema, type Schema } from './postgres.migrations';
import { describeUrlFault, urlPerHost } from './postgres.url';
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
  /** For a new session, with the present content of the files that they name. */
  readonly readSettings: () => PoolConfig;
  /** As last read; once a store is in use, only of that one. */
  schema?: Schema | undefined;
  /** Why its last session was refused; undefined when it was not. */
  fault?: Error | undefined;
  /** Why its store is not the one in use, as reported. */
  difference?: string | undefined;
}

/** The hosts of one store. One of them is in use: one that has the store and accepts writes. */
export class PostgresHosts {
  private readonly hosts: readonly Host[];
  private current: Host;
  /** The store that every session must be in, once it is in use. */
  private store: Schema | undefined;
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
   * @param onRejected called once with why one of several hosts is not used though it accepts writes
   * @throws Error when the URL or the settings are invalid
   */
  constructor(
    where: string | ClientConfig,
    onLost: (error: Error) => void,
    private readonly onRejected: (reason: string) => void = () => undefined,
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

  /** Of the store in use; undefined before {@link useStore}. */
  get schema(): Schema | undefined {
    return this.store && this.current.schema;
  }

  /** From now on, no host with another store is used. */
  useStore(schema: Schema): void {
    this.store = schema;
    this.current.schema = schema;
  }

  /** Says which host has which store, by its identity, or why that is not known. */
  describeStores(): string {
    return this.hosts.map(describeStore).join(' ');
  }

  /** Whether a session is from after the host in use was selected, and so says something about it. */
  isCurrent(session: ClientBase): boolean {
    return (this.checked.get(session) ?? 0) >= this.electedBy;
  }

  /**
   * Uses a host that turns out to have the store and to accept writes: the one in use, if it answers
   * in time, or else the first. Each session is checked again before its next use.
   *
   * @param prefersOthers whether to use another host if there is one
   * @throws Error when there is none, with the reason for each host
   */
  async selectWritable(prefersOthers = false): Promise<void> {
    this.searches++;
    const host = await (this.store ? this.findWritable(prefersOthers) : this.findStore());
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

  /**
   * Asks every host once, before a store is in use. Nothing tells the right store from others then, so
   * none is used while there are several, and none is created while a host that may have it is away.
   */
  private async findStore(): Promise<Host> {
    for (const host of this.hosts) host.schema = undefined;
    const ask = async (host: Host): Promise<void> => {
      (await this.connectTo(host)).release();
    };
    await Promise.allSettled(this.hosts.map(ask));
    const owners = this.hosts.filter(({ schema }) => schema && hasStore(schema));
    const identifiable = owners.filter(({ schema }) => !schema?.hasHiddenIdentity);
    if (new Set(identifiable.map(({ schema }) => schema?.identity)).size > 1) {
      throw new Error(`${this.describeStores()} Name only the hosts of one store.`);
    }
    const mayCreate = owners.length === 0 && this.hosts.every(({ schema }) => schema);
    const candidates = mayCreate ? this.hosts : owners;
    // The coordinator of a Citus cluster shows the other nodes its identity when it migrates.
    const identified = owners.filter(({ schema }) => schema?.identity !== undefined);
    const found = [...identified, ...candidates].find(({ fault }) => fault === undefined);
    const others = this.hosts.filter((host) => !host.fault && !candidates.includes(host));
    if (found) {
      for (const host of others) this.noteDifference(host, 'it has no table plants');
      return found;
    }
    const reasons = this.hosts.map((host) => host.fault?.message ?? describeStore(host));
    if (others.length > 0) reasons.push('A store is created only when all hosts answer.');
    throw new Error(reasons.join(' '));
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
      const { pool } = host;
      // The pool makes each session by its `options`, a public field, so it gets the present files.
      // They are read here, where a file that cannot be read fails this session and no other.
      const isNew = pool.idleCount <= pool.waitingCount;
      if (isNew) Object.assign(pool.options, host.readSettings());
      const session = await pool.connect();
      if (this.checked.get(session) !== this.searches) await this.check(session, host);
      host.fault = undefined;
      return session;
    } catch (error) {
      const cause = firstCause(error);
      // Having no room is an answer too. A name without an address says nothing about its host.
      const { code = '' } = cause as { code?: string };
      const isNameFault = ['ENOTFOUND', 'EAI_AGAIN'].includes(code);
      if (isOutOfResources(cause) || isNameFault) this.noteAnswer(host);
      throw (host.fault = toOperatorError(host.name, cause));
    }
  }

  private async check(session: PoolClient, host: Host): Promise<void> {
    const { searches } = this;
    try {
      await withTimeout(this.assertUsable(session, host), CONNECT_TIMEOUT);
    } catch (error) {
      session.release(true);
      throw error;
    }
    this.checked.set(session, searches);
    this.noteAnswer(host);
  }

  private async assertUsable(session: PoolClient, host: Host): Promise<void> {
    const { store } = this;
    const schema = await readSchema(session);
    const difference = store && describeDifference(schema, store);
    if (difference === undefined) host.schema = schema;
    await assertWritable(session);
    if (store) this.noteDifference(host, difference);
    if (difference === undefined) return;
    throw new Error(
      `this is not the store that was in use before (${difference}). Restore that store, or restart the service with this host alone`,
    );
  }

  /** Behind a name or a proxy, a database can be replaced; of several hosts, one can be another's. */
  private noteDifference(host: Host, difference: string | undefined): void {
    const isNew = difference !== undefined && difference !== host.difference;
    if (isNew && this.hosts.length > 1) this.onRejected(`${host.name} is not used: ${difference}.`);
    host.difference = difference;
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
  const [first, ...others] = urls.map((url) => makeHost(settings, url));
  if (first) return [first, ...others];
  const fault = describeUrlFault(connectionString);
  throw new Error(
    `the URL ${fault ?? 'must be postgres://USER:PASSWORD@HOST:PORT/DATABASE, and sslmode, if set, must be disable, require, verify-ca or verify-full'}`,
  );
}

/** @param settings win over those of the URL, as far as they are defined */
function makeHost(settings: ClientConfig, url?: string): Host {
  const defined = Object.entries(settings).filter(([, value]) => value !== undefined);
  const readSettings = (): PoolConfig => {
    const config: ClientConfig = {
      fallback_application_name: 'plant-store',
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY,
      ...(url !== undefined && readUrl(url)),
      ...Object.fromEntries(defined),
      // Sends one statement at a time, so pipelining has no use here and stays off.
      pipeline: false,
      types: AS_TEXT,
    };
    const connectionTimeoutMillis = Number(config.connectionTimeoutMillis) || CONNECT_TIMEOUT;
    // An idle session reports at once that the server has gone.
    return { ...config, connectionTimeoutMillis, idleTimeoutMillis: 0, Client: ClosingClient };
  };
  const config = readSettings();
  const pool = new Pool(config);
  // A lost session fails its statement. Without a listener it would also end the process.
  pool.on('connect', (session) => session.on('error', () => undefined));
  // The driver fills in its defaults and the PG* variables. A `stream` may be one that connects.
  const { host, port, database = '' } = new Client({ ...config, stream: undefined });
  return { pool, readSettings, name: `PostgreSQL at ${host}:${port}/${database}` };
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
async function assertWritable(session: PoolClient): Promise<void> {
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

function describeStore({ name, schema, fault }: Host): string {
  if (!schema) return fault?.message ?? name;
  const store = `the store ${schema.identity ?? 'without an identity'}`;
  return `${name} has ${hasStore(schema) ? store : 'no store'}.`;
}

function wait(milliseconds: number): Promise<void> {
  return setTimeout(milliseconds, undefined, { ref: false });
}

/** Node tries each address of a host name and reports all failures together, without a message. */
function firstCause(error: unknown): unknown {
  return error instanceof AggregateError ? (error.errors[0] as unknown) : error;
}
