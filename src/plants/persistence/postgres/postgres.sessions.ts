import { setTimeout } from 'node:timers/promises';
import { Client, type ClientBase, type ClientConfig, Pool, type PoolClient } from 'pg';
import { UnavailableError } from '../../errors/errors';
import { StoreOpenError } from '../store-open.error';
import { withTimeout } from '../with-timeout';
import { isPoolExhausted, toOperatorError } from './postgres.errors';
import { type Schema, verifySession } from './postgres.schema';
import { readSettings } from './postgres.settings';

/** The maximum duration of the check of a new session. */
const SESSION_CHECK_TIMEOUT_MS = 2000;
/** The maximum duration of the check of the first session, which also creates the store. */
const STORE_CREATION_TIMEOUT_MS = 30_000;
/** How long closing waits for sessions in use. */
const CLOSE_TIMEOUT_MS = 1000;

/**
 * Sessions in one store, at one address. Each session is checked before its first use. After a failure,
 * new sessions are opened with the settings and files as they are then.
 */
export class PostgresSessions {
  /** Describes the server and the database for an operator. */
  readonly name: string;
  private pool: Pool | undefined;
  private readonly checked = new WeakSet<ClientBase>();
  /** The store of the first session. Sessions in any other store are not used. */
  private store: Schema | undefined;

  /**
   * @param connection a connection URL, or settings of the driver; read again for each pool
   * @param onFailure called when sessions are lost or cannot be opened
   * @param mayCreate whether to create the store if it is missing
   * @throws StoreOpenError when the connection is invalid
   */
  constructor(
    private readonly connection: string | ClientConfig,
    private readonly onFailure: (failure: Error) => void,
    private readonly mayCreate = true,
  ) {
    try {
      // The driver fills in its defaults and the PG* variables. Omit `stream`, which may connect.
      const { host, port, database } = new Client({
        ...readSettings(connection),
        stream: undefined,
      });
      this.name = `PostgreSQL at ${host}:${port}/${database ?? ''}`;
    } catch (cause) {
      const problem = `cannot be used: ${(cause as Error).message}`;
      throw new StoreOpenError('postgres', problem, { cause });
    }
  }

  /** The store as the first session found or created it; undefined before that. */
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
      pool = new Pool({ ...readSettings(this.connection), Client: ClosingClient });
      // The loss of a session fails its statement. Without a listener, it would also end the process.
      pool.on('connect', (session) => session.on('error', () => undefined));
      pool.on('error', (error) => {
        // A new error: the driver attaches its client to the original, and a log would print it.
        if (pool === this.pool)
          this.onFailure(new Error(toOperatorError(this.name, error).message));
      });
      const session = await this.acquire(pool, signal);
      session.release();
      this.pool = pool;
    } catch (error) {
      void pool?.end();
      throw toOperatorError(this.name, error);
    }
  }

  /** Closes all sessions. Waits a limited time for sessions in use. */
  async close(): Promise<void> {
    await Promise.race([this.endPool(), setTimeout(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }

  /**
   * Acquires a session. The caller must release it.
   *
   * @throws UnavailableError when no session is available; no statement was sent
   */
  async connect(): Promise<PoolClient> {
    if (!this.pool) throw new UnavailableError();
    try {
      return await this.acquire(this.pool);
    } catch (error) {
      const cause = toOperatorError(this.name, error);
      if (!isPoolExhausted(error)) this.onFailure(cause);
      throw new UnavailableError({ cause });
    }
  }

  /** @throws UnavailableError when no session is available, or when the statement fails */
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

  /** Resolves when the sessions in use have been released. */
  private async endPool(): Promise<void> {
    const { pool } = this;
    this.pool = undefined;
    await pool?.end();
  }

  /** Acquires a session, and checks it if it is new. */
  private async acquire(pool: Pool, signal?: AbortSignal): Promise<PoolClient> {
    const session = await pool.connect();
    if (this.checked.has(session)) return session;
    try {
      const limit =
        this.store || !this.mayCreate ? SESSION_CHECK_TIMEOUT_MS : STORE_CREATION_TIMEOUT_MS;
      const check = verifySession(session, this.store, this.mayCreate);
      this.store = await withTimeout(check, limit, signal);
    } catch (error) {
      session.release(true);
      throw error;
    }
    this.checked.add(session);
    return session;
  }
}

/**
 * Closes the socket when a connection attempt fails. The driver leaves it open when a password function fails
 * or a certificate is invalid. Retries would then use up the connection slots of the server, which waits a
 * minute for each.
 */
class ClosingClient extends Client {
  override connect(): Promise<Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<Client> | undefined {
    if (callback === undefined) return super.connect();
    super.connect((error: Error) => {
      // The error is null after a success, which the types of the driver omit.
      if (error as Error | null) void this.end();
      callback(error);
    });
    return undefined;
  }
}
