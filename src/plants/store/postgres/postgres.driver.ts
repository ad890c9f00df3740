import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Client, type ClientBase, Pool, type PoolConfig } from 'pg';
import { OptionError } from '../../errors/operator.error';
import type { Plant } from '../../plant/plant';
import type { InsertOutcome } from '../../plants.repository';
import type { KeyedPlant } from '../idempotency';
import type { PlantRange, StoreDriver, StoreFailure } from '../store-driver';
import { insertBatch } from './insert-batch';
import { toFailure } from './postgres.errors';
import { prepareStore, findStore, type FoundStore, verifySession } from './postgres.schema';
import { type PostgresLocation, lacksTls, readPoolConfig, withSession } from './postgres.settings';
import { probe, readPlants } from './postgres.statements';

const NO_TLS_WARNING =
  'The connection to PostgreSQL on another machine is not encrypted: add sslmode=verify-full to its URL, or sslmode=disable to accept that.';

/** How long closing waits for sessions in use. */
const CLOSE_TIMEOUT_MS = 1000;

/**
 * PostgreSQL, or a database that speaks its protocol. Each batch is one statement, which is one transaction.
 * A failure ends the pool of sessions. The next one is opened with the settings and files as they are then.
 */
export class PostgresDriver implements StoreDriver {
  name = 'PostgreSQL';
  readonly startTimeout = 5000;
  readonly maxBatches = 4;
  /** Undefined while the store is not open, or has failed. */
  private pool: Pool | undefined;
  /** The store that was opened first. Sessions in any other store are not used. */
  private store: FoundStore | undefined;
  /** Why no store is open. */
  private failure: unknown = new Error('the store is not open');

  /** @throws OptionError when the URL or the settings are invalid */
  constructor(private readonly location: PostgresLocation) {
    try {
      this.readSettings();
    } catch (cause) {
      if (cause instanceof OptionError) throw cause;
      const message = `postgres cannot be used: ${(cause as Error).message}.`;
      throw new OptionError('postgres', message, { cause });
    }
    if (lacksTls(location)) new Logger('PlantStore').warn(NO_TLS_WARNING);
  }

  async open(signal: AbortSignal, onLost: (failure: StoreFailure) => void): Promise<void> {
    if (this.pool) return;
    try {
      const settings = this.readSettings();
      // Not a session of the pool, which keeps the socket of a failed attempt to connect.
      const found = await withSession(settings, this.store ? findStore : prepareStore);
      if (!this.store && found?.risk) new Logger('PlantStore').warn(`${this.name}: ${found.risk}.`);
      this.store ??= found;
      this.pool = await this.openPool(settings, signal, onLost);
    } catch (error) {
      throw this.fail(error, undefined);
    }
  }

  async commit(batch: readonly KeyedPlant[]): Promise<(InsertOutcome | StoreFailure)[]> {
    const { pool } = this;
    const fail = (error: unknown): StoreFailure => this.fail(error, pool);
    try {
      return await this.run((session) => insertBatch(session, batch, this.name, fail));
    } catch (error) {
      throw fail(error);
    }
  }

  async read(range: PlantRange): Promise<Plant[]> {
    try {
      return await this.run((session) => readPlants(session, range));
    } catch (error) {
      throw toFailure(this.name, error);
    }
  }

  async probe(): Promise<void> {
    const { pool } = this;
    try {
      await this.run(probe);
    } catch (error) {
      throw this.fail(error, pool);
    }
  }

  async close(): Promise<void> {
    await Promise.race([this.endPool(), sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }

  private readSettings(): PoolConfig {
    const settings = readPoolConfig(this.location);
    // The driver fills in its defaults and the PG* variables. Omit `stream`, which may connect.
    const server = new Client({ ...settings, stream: undefined });
    this.name = `PostgreSQL at ${server.host}:${server.port}/${server.database ?? ''}`;
    return settings;
  }

  /** Opens a pool and its first session, whose end shows that the server is unreachable. */
  private async openPool(
    settings: PoolConfig,
    signal: AbortSignal,
    onLost: (failure: StoreFailure) => void,
  ): Promise<Pool> {
    const onConnect = (session: ClientBase): Promise<void> => verifySession(session, this.store);
    const options = { ...settings, onConnect };
    const pool = new Pool(options);
    const openSession = async (): Promise<void> => {
      (await pool.connect()).release();
    };
    // The loss of a session fails its statement. Without a listener, it would also end the process.
    pool.on('connect', (session) => session.on('error', () => undefined));
    // The server or a proxy may close an idle session. The store is lost only if it cannot be replaced.
    pool.on('error', () => {
      openSession().catch((error: unknown) => {
        if (pool === this.pool) onLost(this.fail(error, pool));
      });
    });
    try {
      await openSession();
      signal.throwIfAborted();
    } catch (error) {
      void pool.end();
      throw error;
    }
    return pool;
  }

  /** Records that a pool has failed, so that the next `open` creates a new one. Another failure may have done so. */
  private fail(error: unknown, pool: Pool | undefined): StoreFailure {
    if (pool === this.pool) {
      this.failure = error;
      void this.endPool();
    }
    return toFailure(this.name, error);
  }

  private async endPool(): Promise<void> {
    const { pool } = this;
    this.pool = undefined;
    await pool?.end();
  }

  /** Runs statements in a session, which is closed if they fail. */
  private async run<T>(work: (session: ClientBase) => Promise<T>): Promise<T> {
    if (!this.pool) throw this.failure;
    const session = await this.pool.connect();
    try {
      const result = await work(session);
      session.release();
      return result;
    } catch (error) {
      session.release(true);
      throw error;
    }
  }
}
