import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Client, type ClientBase, type ClientConfig, Pool, type PoolClient } from 'pg';
import { UnavailableError } from '../../errors/errors';
import { CircuitBreaker } from '../circuit-breaker';
import { StoreOpenError } from '../store-open.error';
import { withTimeout } from '../with-timeout';
import { isPoolExhausted, judge, toOperatorError, type Verdict } from './postgres.errors';
import { enterStore, type Schema } from './postgres.schema';
import { readSettings } from './postgres.settings';

/** Milliseconds that the check of a new session may take. */
const CHECK_TIMEOUT = 2000;
/** Milliseconds that the first one may take, which creates the store. */
const CREATION_TIMEOUT = 30_000;
/** Milliseconds that closing waits for sessions in use. */
const CLOSE_TIMEOUT = 1000;

/**
 * Sessions in one store, at one address. Each is checked before its first use. After a fault callers are
 * refused at once, until a new pool has a session. It is made from what the settings and files say then.
 */
export class PostgresSessions {
  /** The server and the database, for an operator. */
  readonly name: string;
  readonly breaker = new CircuitBreaker(
    (signal) => this.replacePool(signal),
    () => this.name,
  );
  private pool: Pool | undefined;
  private readonly checked = new WeakSet<ClientBase>();
  /** As found or created at the start; undefined before. No session in another one is used. */
  store: Schema | undefined;

  /**
   * @param where a connection URL, or settings of the driver; read again for each pool
   * @param mayCreate whether the store is created if it is missing
   * @throws StoreOpenError when it is invalid
   */
  constructor(
    private readonly where: string | ClientConfig,
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

  /** Connects, and creates the store. Goes on after this if that takes long. */
  start(): Promise<void> {
    new Logger('PlantStore').log(`Plants are stored in ${this.name}`);
    return this.breaker.start();
  }

  /** Waits a moment for sessions in use. */
  async close(): Promise<void> {
    this.breaker.stop();
    await Promise.race([this.endPool(), setTimeout(CLOSE_TIMEOUT, undefined, { ref: false })]);
  }

  /**
   * Takes a session. The caller releases it.
   *
   * @throws UnavailableError when there is none; no statement of the caller was sent then
   */
  async connect(): Promise<PoolClient> {
    const { fault } = this.breaker;
    if (fault || !this.pool) throw new UnavailableError({ cause: fault });
    try {
      return await this.open(this.pool);
    } catch (error) {
      const cause = toOperatorError(this.name, error);
      if (!isPoolExhausted(error)) this.breaker.open(cause);
      throw new UnavailableError({ cause });
    }
  }

  /** Judges the error of a statement, which may take the store out of use. */
  async report(error: unknown, session: ClientBase): Promise<{ verdict: Verdict; fault: Error }> {
    const fault = toOperatorError(this.name, error);
    const verdict = await judge(error, session);
    if (verdict === 'lost') this.breaker.open(fault);
    // The server may work, and only miss another server.
    if (verdict === 'unknown') this.breaker.pause(fault);
    // A probe does not detect a full disk.
    if (verdict === 'unusable') this.breaker.open(fault, false);
    return { verdict, fault };
  }

  /** @throws UnavailableError when there is no session, or it does not answer */
  async read<T>(statement: (session: ClientBase) => Promise<T>): Promise<T> {
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

  /** Until the new pool has a session, the breaker keeps callers from it. */
  private async replacePool(signal: AbortSignal): Promise<void> {
    void this.endPool();
    try {
      const pool = new Pool({ ...readSettings(this.where), Client: ClosingClient });
      this.pool = pool;
      // A lost session fails its statement. Without a listener it would also end the process.
      pool.on('connect', (session) => session.on('error', () => undefined));
      pool.on('error', (error) => {
        // A new error: the driver attaches its client to the original, and a log would print it.
        const fault = new Error(toOperatorError(this.name, error).message);
        if (pool === this.pool) this.breaker.open(fault);
      });
      const session = await this.open(pool, signal);
      session.release();
    } catch (error) {
      throw toOperatorError(this.name, error);
    }
  }

  /** Resolves once the sessions in use were released. */
  private async endPool(): Promise<void> {
    const { pool } = this;
    this.pool = undefined;
    await pool?.end();
  }

  /** Takes a session, and checks it if it is new. */
  private async open(pool: Pool, signal?: AbortSignal): Promise<PoolClient> {
    const session = await pool.connect();
    if (this.checked.has(session)) return session;
    try {
      const limit = this.store ? CHECK_TIMEOUT : CREATION_TIMEOUT;
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
