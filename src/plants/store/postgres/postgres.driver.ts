/**
 * Undocumented behavior of pg (tested with pg 8.23 and pg-pool 3.14): a pool waits for the promise of `onConnect`, and
 * closes a session if that is rejected. `new Client()` fills in the defaults and the PG* variables without connecting.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import {
  Client,
  type ClientBase,
  type DatabaseError,
  Pool,
  type PoolClient,
  type PoolConfig,
} from 'pg';
import { OptionError } from '../../errors/operator.error';
import type { Plant } from '../../plant/plant';
import type { KeyedPlant } from '../idempotency';
import {
  type InsertResult,
  type PlantRange,
  type StoreDriver,
  StoreFailure,
} from '../store-driver';
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
 * The number of batches that commit at the same time, and of reads. With 16 to 256 connections, four batches
 * stored 1.08 to 1.98 times as many plants per second as one: the longer a sync takes, the more.
 */
const MAX_SESSIONS = 4;

/** SQLSTATE `admin_shutdown`: somebody has terminated the session, or the server shuts down. */
const TERMINATED = '57P01';

/** The sessions that are used while the store is open. Many reads at once cannot take the sessions of commits. */
interface Sessions {
  readonly settings: PoolConfig;
  readonly commits: Pool;
  readonly reads: Pool;
}

/** A session, and what to call when nothing more can be sent in it. */
type Work<T> = (session: ClientBase, onLost: (error: unknown) => StoreFailure) => Promise<T>;

/**
 * PostgreSQL, or a database that speaks its protocol. Each batch is one statement, which is one transaction.
 *
 * A session that is lost fails its batch or its read alone. A probe in a new session determines whether the store has
 * failed: only then are the other sessions closed, and `open` opens new ones with the settings and files as they are
 * then.
 */
export class PostgresDriver implements StoreDriver {
  /** The address and the database. It may change when the store is opened again. */
  name: string;
  readonly startTimeout = 5000;
  readonly maxBatches = MAX_SESSIONS;
  /** Undefined while the store is not open, or has failed. */
  private sessions: Sessions | undefined;
  /** The store that was opened first. Sessions in any other store are not used. */
  private store: FoundStore | undefined;
  /** Whether the database has rejected several plants of the latest batch. One says little about the next batch. */
  private expectsRejections = false;
  /** Why no store is open. */
  private failure: unknown = new Error('the store is not open');

  /** @throws OptionError when the URL or the settings are invalid */
  constructor(private readonly location: PostgresLocation) {
    try {
      this.name = nameServer(readPoolConfig(location));
    } catch (cause) {
      if (cause instanceof OptionError) throw cause;
      const message = `postgres cannot be used: ${(cause as Error).message}.`;
      throw new OptionError('postgres', message, { cause });
    }
    if (lacksTls(location)) new Logger('PlantStore').warn(NO_TLS_WARNING);
  }

  async open(signal: AbortSignal, onLost: (failure: StoreFailure) => void): Promise<void> {
    // When sessions fail, `fail` removes them. So these can be used.
    if (this.sessions) return;
    try {
      const settings = readPoolConfig(this.location);
      this.name = nameServer(settings);
      // Not a session of a pool, which keeps the socket of a failed attempt to connect.
      const found = await withSession(settings, this.store ? findStore : prepareStore);
      if (!this.store && found?.risk) new Logger('PlantStore').warn(`${this.name}: ${found.risk}.`);
      this.store ??= found;
      this.sessions = await this.openSessions(settings, signal, onLost);
    } catch (error) {
      throw this.fail(error, undefined);
    }
  }

  async commit(batch: readonly KeyedPlant[]): Promise<InsertResult[]> {
    const { name: store, expectsRejections } = this;
    try {
      const results = await this.run('commits', (session, onLost) =>
        insertBatch(session, batch, { store, expectsRejections, onLost }),
      );
      this.expectsRejections = results.filter(isRejection).length > 1;
      return results;
    } catch (error) {
      throw toFailure(this.name, error, 'notStored', 'batch');
    }
  }

  async read(range: PlantRange): Promise<Plant[]> {
    try {
      return await this.run('reads', (session) => readPlants(session, range));
    } catch (error) {
      throw toFailure(this.name, error);
    }
  }

  /** Uses a new session: the one that another batch has just lost may not be the only one. */
  async probe(): Promise<void> {
    const { sessions } = this;
    try {
      if (!sessions) throw this.failure;
      await retryIfTerminated(() =>
        withSession(sessions.settings, async (session) => {
          await verifySession(session, this.store);
          await probe(session);
        }),
      );
    } catch (error) {
      throw this.fail(error, sessions);
    }
  }

  async close(): Promise<void> {
    await Promise.race([this.endSessions(), sleep(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }

  /** Opens the pools, and a first session, whose end shows that the server is unreachable. */
  private async openSessions(
    settings: PoolConfig,
    signal: AbortSignal,
    onLost: (failure: StoreFailure) => void,
  ): Promise<Sessions> {
    const sessions = {
      settings,
      // Sends the statements of a transaction without waiting for each response.
      commits: this.createPool({ ...settings, pipeline: true }),
      reads: this.createPool(settings),
    };
    const { commits } = sessions;
    // The server or a proxy may close an idle session. The store is lost only if it cannot be replaced.
    commits.on('error', () => {
      ensureSession(commits).catch((error: unknown) => {
        if (sessions === this.sessions) onLost(this.fail(error, sessions));
      });
    });
    try {
      await ensureSession(commits);
      signal.throwIfAborted();
    } catch (error) {
      void commits.end();
      throw error;
    }
    return sessions;
  }

  private createPool(settings: PoolConfig): Pool {
    const onConnect = (session: ClientBase): Promise<void> => verifySession(session, this.store);
    const options = { ...settings, max: MAX_SESSIONS, onConnect };
    const pool = new Pool(options);
    // The loss of a session fails its statement. Without these listeners, it would also end the process.
    pool.on('connect', (session) => session.on('error', () => undefined));
    pool.on('error', () => undefined);
    return pool;
  }

  /** Records that sessions have failed, so that `open` opens new ones. Another failure may have done so before. */
  private fail(error: unknown, sessions: Sessions | undefined): StoreFailure {
    if (sessions === this.sessions) {
      this.failure = error;
      void this.endSessions();
    }
    return toFailure(this.name, error);
  }

  private async endSessions(): Promise<void> {
    const { sessions } = this;
    this.sessions = undefined;
    await Promise.all([sessions?.commits.end(), sessions?.reads.end()]);
  }

  /** Runs statements in a session, which is closed if they fail or report that it is lost. */
  private async run<T>(use: 'commits' | 'reads', work: Work<T>): Promise<T> {
    if (!this.sessions) throw this.failure;
    const session = await takeSession(this.sessions[use]);
    let isLost = false;
    const onLost = (error: unknown): StoreFailure => {
      isLost = true;
      return toFailure(this.name, error, 'notStored', 'batch');
    };
    try {
      return await work(session, onLost);
    } catch (error) {
      isLost = true;
      throw error;
    } finally {
      session.release(isLost);
    }
  }
}

function isRejection(result: InsertResult): boolean {
  return result instanceof StoreFailure && result.kind === 'row';
}

/** Takes an idle session of a pool, or opens a new one. */
function takeSession(pool: Pool): Promise<PoolClient> {
  return retryIfTerminated(() => pool.connect());
}

/** Opens a session of a pool, unless it has an idle one. */
async function ensureSession(pool: Pool): Promise<void> {
  (await takeSession(pool)).release();
}

/** Uses a new session, and another one if it is terminated: that says nothing about the store. */
async function retryIfTerminated<T>(useSession: () => Promise<T>): Promise<T> {
  try {
    return await useSession();
  } catch (error) {
    if ((error as Partial<DatabaseError>).code !== TERMINATED) throw error;
    return useSession();
  }
}

/** Names a server for logs. */
function nameServer(settings: PoolConfig): string {
  // The driver fills in its defaults and the PG* variables. Omit `stream`, which may connect.
  const { host, port, database } = new Client({ ...settings, stream: undefined });
  return `PostgreSQL at ${host}:${port}/${database ?? ''}`;
}
