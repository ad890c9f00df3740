import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Client, type ClientBase, type ClientConfig, Pool, type PoolClient } from 'pg';
import { UnavailableError } from '../../errors/errors';
import { CircuitBreaker } from '../circuit-breaker';
import { withTimeout } from '../with-timeout';
import { isPoolExhausted, isServerError, judge, toOperatorError } from './postgres.errors';
import {
  assertReadable,
  assertReplicating,
  checkSession,
  migrateDatabase,
  readSchema,
  type Schema,
} from './postgres.schema';
import { readSettings } from './postgres.settings';

/** Milliseconds that the check of a new session may take. */
const CHECK_TIMEOUT = 2000;
/** Milliseconds that bringing the schema up to date may take, locks included. */
const MIGRATION_TIMEOUT = 30_000;
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
    (signal) => this.connectAnew(signal),
    () => this.name,
  );
  private readonly logger = new Logger('PlantStore');
  private pool: Pool | undefined;
  /** Of the sessions that were checked. */
  private readonly poolOf = new WeakMap<ClientBase, Pool>();
  /** Called when the store is usable, at first and after each fault. */
  onUsable: () => void = () => undefined;
  /** As found or created at the start; undefined before. No session in another one is used. */
  store: Schema | undefined;

  /**
   * @param where a connection URL, or settings of the driver; read again for each pool
   * @param mayMigrate whether the store is created or migrated; if not, it is used as it is found
   * @throws Error when it is invalid
   */
  constructor(
    private readonly where: string | ClientConfig,
    private readonly mayMigrate = true,
  ) {
    // The driver fills in its defaults and the PG* variables. A `stream` may be one that connects.
    const { host, port, database } = new Client({ ...readSettings(where), stream: undefined });
    this.name = `PostgreSQL at ${host}:${port}/${database ?? ''}`;
  }

  /** Connects, and migrates the store. Goes on after this if that takes long. */
  start(): Promise<void> {
    this.logger.log(`Plants are stored in ${this.name}`);
    return this.breaker.start();
  }

  /** Waits a moment for sessions in use. */
  async close(): Promise<void> {
    this.breaker.stop();
    await Promise.race([this.endPool(), setTimeout(CLOSE_TIMEOUT, undefined, { ref: false })]);
  }

  /** Resolves once the sessions in use were released. */
  private async endPool(): Promise<void> {
    const { pool } = this;
    this.pool = undefined;
    await pool?.end();
  }

  /**
   * Takes a session. The caller releases it.
   *
   * @throws UnavailableError when there is none; no statement of the caller was sent then
   */
  async connect(): Promise<PoolClient> {
    const { pool } = this;
    const { fault } = this.breaker;
    if (fault || !pool) throw new UnavailableError({ cause: fault });
    try {
      return await this.open(pool);
    } catch (error) {
      const cause = toOperatorError(this.name, error);
      if (pool === this.pool && !isPoolExhausted(error)) this.breaker.open(cause);
      throw new UnavailableError({ cause });
    }
  }

  /**
   * Takes the store out of use, unless the error of a statement says nothing about the next one. If its
   * outcome is unknown, but the session is alive, the server may only lack another one.
   *
   * @returns the error for an operator
   */
  report(error: unknown, session: ClientBase, isSessionLost = !isServerError(error)): Error {
    const fault = toOperatorError(this.name, error);
    if (this.poolOf.get(session) !== this.pool) return fault;
    const verdict = isServerError(error) ? judge(error) : 'unknown';
    if (isSessionLost) this.breaker.open(fault);
    else if (verdict === 'unknown') this.breaker.pause(fault);
    // A probe does not detect a full disk.
    else if (verdict === 'unusable') this.breaker.open(fault, false);
    return fault;
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

  private async connectAnew(signal: AbortSignal): Promise<void> {
    void this.endPool();
    let pool: Pool | undefined;
    try {
      pool = this.makePool();
      const session = await this.open(pool);
      try {
        await withTimeout(this.prepare(session), MIGRATION_TIMEOUT, signal);
      } catch (error) {
        session.release(true);
        throw error;
      }
      session.release();
      this.pool = pool;
      this.onUsable();
    } catch (error) {
      void pool?.end();
      throw toOperatorError(this.name, error);
    }
  }

  private makePool(): Pool {
    const pool = new Pool({ ...readSettings(this.where), Client: ClosingClient });
    // A lost session fails its statement. Without a listener it would also end the process.
    pool.on('connect', (session) => session.on('error', () => undefined));
    pool.on('error', (error) => {
      // A new error: the driver attaches its client to the original, and a log would print it.
      const fault = new Error(toOperatorError(this.name, error).message);
      if (pool === this.pool) this.breaker.open(fault);
    });
    return pool;
  }

  private async open(pool: Pool): Promise<PoolClient> {
    const session = await pool.connect();
    if (this.poolOf.has(session)) return session;
    try {
      await withTimeout(checkSession(session, this.store), CHECK_TIMEOUT);
    } catch (error) {
      session.release(true);
      throw error;
    }
    this.poolOf.set(session, pool);
    return session;
  }

  /** Creates or migrates the store, but only the first one of a process. */
  private async prepare(session: ClientBase): Promise<void> {
    await assertReplicating(session);
    const log = this.logger.log.bind(this.logger);
    const find = this.mayMigrate ? migrateDatabase : readSchema;
    const store = this.store ?? (await find(session, log));
    if (store.hasPlants) await assertReadable(session, store);
    if (!this.store && !store.hasKeys) {
      this.logger.warn(
        `${this.name}: the Idempotency-Key header is ignored, because the table plants has no column idempotency_key of type bytea.`,
      );
    }
    this.store = store;
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
