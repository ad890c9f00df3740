import { setTimeout } from 'node:timers/promises';
import { Client, type ClientBase, type ClientConfig, Pool, type PoolClient } from 'pg';
import { UnavailableError } from '../../errors/errors';
import { StoreOpenError } from '../store-open.error';
import { withTimeout } from '../with-timeout';
import { isPoolExhausted, toOperatorError } from './postgres.errors';
import { enterStore, type Schema } from './postgres.schema';
import { readSettings } from './postgres.settings';

/** Milliseconds that the check of a new session may take. */
const CHECK_TIMEOUT = 2000;
/** Milliseconds that the first one may take, which creates the store. */
const CREATION_TIMEOUT = 30_000;
/** Milliseconds that closing waits for sessions in use. */
const CLOSE_TIMEOUT = 1000;

/**
 * Sessions in one store, at one address. Each is checked before its first use. After a fault they are
 * opened again, from what the settings and files say then.
 */
export class PostgresSessions {
  /** The server and the database, for an operator. */
  readonly name: string;
  private pool: Pool | undefined;
  private readonly checked = new WeakSet<ClientBase>();
  /** No session in another one is used. */
  private store: Schema | undefined;

  /**
   * @param where a connection URL, or settings of the driver; read again for each pool
   * @param onFault is told when sessions are lost or none can be opened
   * @param mayCreate whether the store is created if it is missing
   * @throws StoreOpenError when it is invalid
   */
  constructor(
    private readonly where: string | ClientConfig,
    private readonly onFault: (fault: Error) => void,
    private readonly mayCreate = true,
  ) {
    try {
      // The driver fills in its defaults and the PG* variables. A `stream` may be one that connects.
      const { host, port, database } = new Client({ ...readSettings(where), stream: undefined });
      this.name = `PostgreSQL at ${host}:${port}/${database ?? ''}`;
    } catch (cause) {
      const clause = `cannot be used: ${(cause as Error).message}`;
      throw new StoreOpenError('postgres', clause, { cause });
    }
  }

  /** What the database has of a store, as found or created at first; undefined before. */
  get schema(): Schema | undefined {
    return this.store;
  }

  /**
   * Replaces the pool, and opens a session in the new one.
   *
   * @throws Error saying why the store cannot be used
   */
  async open(signal?: AbortSignal): Promise<void> {
    void this.endPool();
    let pool: Pool | undefined;
    try {
      pool = new Pool({ ...readSettings(this.where), Client: ClosingClient });
      // A lost session fails its statement. Without a listener it would also end the process.
      pool.on('connect', (session) => session.on('error', () => undefined));
      pool.on('error', (error) => {
        // A new error: the driver attaches its client to the original, and a log would print it.
        if (pool === this.pool) this.onFault(new Error(toOperatorError(this.name, error).message));
      });
      const session = await this.enter(pool, signal);
      session.release();
      this.pool = pool;
    } catch (error) {
      void pool?.end();
      throw toOperatorError(this.name, error);
    }
  }

  /** Waits a moment for sessions in use. */
  async close(): Promise<void> {
    await Promise.race([this.endPool(), setTimeout(CLOSE_TIMEOUT, undefined, { ref: false })]);
  }

  /**
   * Takes a session. The caller releases it.
   *
   * @throws UnavailableError when there is none; no statement of the caller was sent then
   */
  async connect(): Promise<PoolClient> {
    if (!this.pool) throw new UnavailableError();
    try {
      return await this.enter(this.pool);
    } catch (error) {
      const cause = toOperatorError(this.name, error);
      if (!isPoolExhausted(error)) this.onFault(cause);
      throw new UnavailableError({ cause });
    }
  }

  /** @throws UnavailableError when there is no session, or it does not answer */
  async run<T>(statement: (session: ClientBase) => Promise<T>): Promise<T> {
    const session = await this.connect();
    try {
      const result = await statement(session);
      session.release();
      return result;
    } catch (error) {
      session.release(true);
      throw new UnavailableError({ cause: toOperatorError(this.name, error) });
    }
  }

  /** Resolves once the sessions in use were released. */
  private async endPool(): Promise<void> {
    const { pool } = this;
    this.pool = undefined;
    await pool?.end();
  }

  /** Takes a session, and checks it if it is new. */
  private async enter(pool: Pool, signal?: AbortSignal): Promise<PoolClient> {
    const session = await pool.connect();
    if (this.checked.has(session)) return session;
    try {
      const limit = this.store || !this.mayCreate ? CHECK_TIMEOUT : CREATION_TIMEOUT;
      const entry = enterStore(session, this.store, this.mayCreate);
      this.store = await withTimeout(entry, limit, signal);
    } catch (error) {
      session.release(true);
      throw error;
    }
    this.checked.add(session);
    return session;
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
