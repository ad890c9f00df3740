import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { type ClientBase, type ClientConfig, Pool, type PoolClient, type PoolConfig } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../errors/errors';
import type { Plant } from '../../plant';
import type { InsertOutcome } from '../../plants.repository';
import { type BatchStatements, insertBatch } from '../insert-batch';
import type { KeyedPlant } from '../keyed-plant';
import type { OpenStore, PlantRange, StoreDriver } from '../store-driver';
import { StoreOpenError } from '../store-open.error';
import { classifyError, isUnprepared, toOperatorError } from './postgres.errors';
import { prepareStore, type Schema, verifySession } from './postgres.schema';
import { describeServer, lacksTls, readSettings, withSession } from './postgres.settings';
import * as statements from './postgres.statements';

const NO_TLS_WARNING =
  'The connection to PostgreSQL on another machine is not encrypted: add sslmode=verify-full to its URL, or sslmode=disable to accept that.';

/** The maximum number of attempts if other transactions cause the rollback of a batch. */
const MAX_BATCH_ATTEMPTS = 10;
/** How long closing waits for sessions in use. */
const CLOSE_TIMEOUT_MS = 1000;

type Outcome = InsertOutcome | PlantStoreError;

/**
 * PostgreSQL, or a database that speaks its protocol. Each batch is one statement, which is one transaction.
 * A failure ends the pool of sessions. The next one is opened with the settings and files as they are then.
 */
export class PostgresDriver implements StoreDriver {
  readonly name: string;
  readonly startTimeout = 5000;
  /** The sessions in use; undefined while the store is not open, or has failed. */
  private pool: Pool | undefined;
  private opened: OpenStore | undefined;
  /** The store that was opened first. Sessions in any other store are not used. */
  private store: Schema | undefined;
  /** Prepared statements save the server 25% of its CPU time. Some proxies do not support them. */
  private isPrepared = true;

  /**
   * @param connection a connection URL, or settings of the driver, whose `connectionString` may be a URL
   * @throws StoreOpenError when the URL or the settings are invalid
   */
  constructor(private readonly connection: string | ClientConfig) {
    try {
      this.name = describeServer(readSettings(connection));
    } catch (cause) {
      const message = `postgres cannot be used: ${(cause as Error).message}.`;
      throw new StoreOpenError('postgres', message, { cause });
    }
    if (lacksTls(connection)) new Logger('PlantStore').warn(NO_TLS_WARNING);
  }

  async open(signal: AbortSignal): Promise<OpenStore> {
    if (this.pool && this.opened) return this.opened;
    try {
      const settings = readSettings(this.connection);
      // Not a session of the pool, which keeps the socket of a failed attempt to connect.
      this.store = await withSession(settings, (session) => prepareStore(session, this.store));
      signal.throwIfAborted();
      return await this.openPool(settings, this.store);
    } catch (error) {
      throw toOperatorError(this.name, error);
    }
  }

  async commit(batch: readonly KeyedPlant[]): Promise<Outcome[]> {
    const session = await this.connect().catch((error: unknown) => {
      throw new UnavailableError({ cause: this.fail(error) });
    });
    try {
      const insertion = this.createStatements(session, statements.INSERT);
      return await this.explainTaken(session, batch, await insertBatch(batch, insertion));
    } catch (error) {
      throw new OutcomeUnknownError({ cause: this.fail(error) });
    } finally {
      session.release();
    }
  }

  async read(range: PlantRange): Promise<Plant[]> {
    try {
      return await this.run((session) => statements.readPlants(session, range));
    } catch (error) {
      throw new UnavailableError({ cause: toOperatorError(this.name, error) });
    }
  }

  async probe(): Promise<void> {
    try {
      await this.run(async (session) => {
        try {
          await statements.commitNothing(session, true);
        } catch (error) {
          if ((await classifyError(error, session)) !== 'row') throw error;
          // The table may reject only the rows of a probe.
          await session.query(statements.INSERT_EXISTING);
        }
      });
    } catch (error) {
      throw this.fail(error);
    }
  }

  async close(): Promise<void> {
    await Promise.race([this.endPool(), sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }

  /** Opens a pool and its first session. While that is idle, its end shows that the server is unreachable. */
  private async openPool(settings: PoolConfig, store: Schema): Promise<OpenStore> {
    const onConnect = (session: ClientBase): Promise<void> => verifySession(session, store);
    const options = { ...settings, onConnect };
    const pool = new Pool(options);
    const openSession = async (): Promise<void> => {
      (await pool.connect()).release();
    };
    const { promise: lost, resolve } = Promise.withResolvers<Error>();
    // The loss of a session fails its statement. Without a listener, it would also end the process.
    pool.on('connect', (session) => session.on('error', () => undefined));
    // The server or a proxy may close an idle session. The store is lost only if it cannot be replaced.
    pool.on('error', () => {
      openSession().catch((error: unknown) => {
        if (pool === this.pool) resolve(this.fail(error));
      });
    });
    try {
      await openSession();
    } catch (error) {
      void pool.end();
      throw error;
    }
    this.pool = pool;
    return (this.opened = { lost });
  }

  /** Records that the store has failed, so that the next `open` creates a new pool. */
  private fail(error: unknown): Error {
    void this.endPool();
    return toOperatorError(this.name, error);
  }

  /** Resolves when the sessions in use have been released. */
  private async endPool(): Promise<void> {
    const { pool } = this;
    this.pool = undefined;
    await pool?.end();
  }

  /** The caller must release the session. */
  private async connect(): Promise<PoolClient> {
    if (!this.pool) throw new Error('the store is not open');
    return this.pool.connect();
  }

  private async run<T>(work: (session: ClientBase) => Promise<T>): Promise<T> {
    const session = await this.connect();
    try {
      const result = await work(session);
      session.release();
      return result;
    } catch (error) {
      session.release(true);
      throw error;
    }
  }

  private createStatements(
    session: ClientBase,
    statement: typeof statements.INSERT,
  ): BatchStatements {
    return {
      insert: (rows) => statements.insertPlants(session, rows, statement, this.isPrepared),
      findKeyed: (rows) => statements.findKeyed(session, rows),
      handle: async (error, attempt) => {
        const reach = await classifyError(error, session);
        if (reach === 'retry' && attempt < MAX_BATCH_ATTEMPTS) {
          if (isUnprepared(error)) this.isPrepared = false;
          await sleep(Math.random() * 2 ** attempt);
        } else if (reach !== 'row') {
          return { reach: reach === 'retry' ? 'batch' : reach, cause: this.fail(error) };
        }
        return { reach, cause: toOperatorError(this.name, error) };
      },
    };
  }

  /**
   * Explains why plants were not inserted: usually, their ids exist. Otherwise the table rejects them, and
   * another insert fails with the name of the constraint, which `ON CONFLICT DO NOTHING` hides.
   */
  private async explainTaken(
    session: ClientBase,
    batch: readonly KeyedPlant[],
    outcomes: Outcome[],
  ): Promise<Outcome[]> {
    const taken = batch.filter((_, at) => outcomes[at] === 'taken');
    if (taken.length === 0) return outcomes;
    const ids = await statements.findIds(session, taken);
    const rejected = taken.filter(({ id }) => !ids.has(id));
    if (rejected.length === 0) return outcomes;
    const insertion = this.createStatements(session, statements.INSERT_OR_FAIL);
    const reasons = await insertBatch(rejected, insertion);
    return outcomes.map((outcome, at) => {
      const reason = reasons[rejected.findIndex((plant) => plant === batch[at])];
      if (reason !== 'taken') return reason ?? outcome;
      const cause = new Error(`${this.name}: a trigger or a rule prevents the insert of a plant.`);
      return new PlantStoreError('internal', undefined, { cause });
    });
  }
}
