import { setTimeout } from 'node:timers/promises';
import type { OnApplicationShutdown } from '@nestjs/common';
import type { ClientBase, ClientConfig, PoolClient } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../errors/errors';
import { INT64_MAX, INT64_MIN } from '../../int64';
import type { Plant } from '../../plant';
import { type Insertion, PlantsRepository } from '../../plants.repository';
import { GroupCommit } from '../group-commit';
import { type KeyedPlant, plantBatches } from '../plant-batches';
import { StoreOpenError } from '../store-open.error';
import { isServerError, judge } from './postgres.errors';
import { outcomeOf, type PlantsById, type RowOutcomes } from './postgres.outcomes';
import { PostgresSessions } from './postgres.sessions';
import { findKeyed, findPlant, insertPlants, readPlants } from './postgres.statements';

/** How often a batch is tried that other transactions cause to be rolled back. */
const MAX_ATTEMPTS = 10;

/**
 * Stores plants in PostgreSQL, or in a database that speaks its protocol. Each batch is one
 * statement, which is one transaction.
 */
export class PostgresPlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly commits = new GroupCommit<KeyedPlant, Insertion>({
    ...plantBatches,
    commit: (batch) => this.commit(batch),
  });
  /** It saves the server a quarter of its time, until a proxy turns out not to support it. */
  private usesPreparedStatement = true;

  private constructor(private readonly sessions: PostgresSessions) {
    super();
    sessions.onUsable = () => {
      this.commits.forgetLate();
    };
  }

  /**
   * Connects and migrates. A database that cannot be used is not an error: the repository is not ready
   * then, and keeps trying.
   *
   * @param where a connection URL, or settings of the driver, whose `connectionString` may be one. They
   *   are read again after each fault.
   * @throws StoreOpenError when the URL or the settings are invalid
   */
  static async open(where: string | ClientConfig): Promise<PostgresPlantsRepository> {
    const sessions = makeSessions(where);
    await sessions.start();
    return new PostgresPlantsRepository(sessions);
  }

  /**
   * Says for an operator what a start would find, and changes nothing.
   *
   * @throws StoreOpenError when the URL or the settings are invalid
   * @throws Error saying why the database cannot be used
   */
  static async look(where: string | ClientConfig): Promise<string> {
    const sessions = makeSessions(where, false);
    try {
      await sessions.start();
      if (sessions.breaker.fault) throw sessions.breaker.fault;
      const { name, store } = sessions;
      if (!store?.hasPlants)
        return `${name}, which has no table plants: the service will create it`;
      return `${name}, the store ${store.identity ?? 'without an identity'}`;
    } finally {
      await sessions.close();
    }
  }

  override isReady(): boolean {
    return !this.commits.isLate && this.findFault() === undefined;
  }

  override findFault(): Error | undefined {
    return this.sessions.breaker.fault;
  }

  override queueLength(): number {
    return this.commits.queueLength;
  }

  override isFull(): boolean {
    return this.commits.isFull;
  }

  async insert({ id, name, tag }: Plant, keyDigest?: string): Promise<Insertion> {
    const cause = this.findFault();
    // The server may have fallen silent. More creations would only wait with the one that waits.
    if (cause || this.commits.hasLateItem) throw new UnavailableError({ cause });
    // A table of the operator may have no column for keys.
    const digest = this.sessions.store?.hasKeys ? keyDigest : undefined;
    return this.commits.submit({ id, name, tag, keyDigest: digest });
  }

  async find(id: bigint): Promise<Plant | undefined> {
    return this.sessions.read((session) => findPlant(session, id));
  }

  async page(after: bigint | undefined, limit: number): Promise<Plant[]> {
    if (after === INT64_MAX) return [];
    const from = after === undefined ? INT64_MIN : after + 1n;
    return this.sessions.read((session) => readPlants(session, from, INT64_MAX, limit));
  }

  /** Commits the plants accepted so far, then closes all sessions. Nest calls it once HTTP has stopped. */
  async onApplicationShutdown(): Promise<void> {
    await this.commits.close();
    await this.sessions.close();
  }

  private async commit(batch: readonly KeyedPlant[]): Promise<(Insertion | PlantStoreError)[]> {
    const cause = this.sessions.breaker.pauseReason;
    if (cause) throw new UnavailableError({ cause });
    return this.commitOn(await this.sessions.connect(), batch);
  }

  /** Inserts the first plant of each id, finds the repetitions of stored ones, and compares. */
  private async commitOn(
    session: PoolClient,
    batch: readonly KeyedPlant[],
  ): Promise<(Insertion | PlantStoreError)[]> {
    // Of equal keys, a Map holds the last.
    const firsts = new Map(batch.toReversed().map((plant) => [plant.id, plant]));
    // Sorted, so that instances cannot deadlock.
    const rows = [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
    const outcomes = await this.insertRows(session, rows);
    const taken = batch.filter((plant) => plant.keyDigest && outcomes.get(plant.id) === false);
    const stored = isLost(outcomes)
      ? new UnavailableError()
      : await this.findStored(session, taken);
    session.release(stored instanceof UnavailableError);
    return batch.map((plant) => outcomeOf(plant, firsts, outcomes, stored));
  }

  /** Commits rows with different ids. A row that the database refuses fails alone. */
  private async insertRows(session: ClientBase, rows: readonly KeyedPlant[]): Promise<RowOutcomes> {
    for (let attempt = 1; ; attempt++) {
      try {
        const inserted = await insertPlants(session, rows, this.usesPreparedStatement);
        this.sessions.breaker.confirm();
        return new Map(rows.map(({ id }) => [id, inserted.has(id)]));
      } catch (error) {
        const isAlive = isServerError(error) && (await hasSurvived(session));
        const verdict = isAlive ? judge(error) : 'unknown';
        if (verdict === 'unprepared') this.usesPreparedStatement = false;
        if (['again', 'unprepared'].includes(verdict) && attempt < MAX_ATTEMPTS) {
          if (verdict === 'again') await setTimeout(Math.random() * 2 ** attempt);
          continue;
        }
        const cause = this.sessions.report(error, session, !isAlive);
        if (verdict === 'unknown') return failAll(rows, new OutcomeUnknownError({ cause }));
        if (verdict !== 'row') return failAll(rows, new UnavailableError({ cause }));
        if (rows.length > 1) return this.insertHalves(session, rows, cause);
        return failAll(rows, new PlantStoreError('internal', undefined, { cause }));
      }
    }
  }

  private async insertHalves(
    session: ClientBase,
    rows: readonly KeyedPlant[],
    cause: Error,
  ): Promise<RowOutcomes> {
    const middle = rows.length >> 1;
    const outcomes = await this.insertRows(session, rows.slice(0, middle));
    const others = rows.slice(middle);
    // If the session was lost meanwhile, the other half was never sent.
    const rest = isLost(outcomes)
      ? failAll(others, new UnavailableError({ cause }))
      : await this.insertRows(session, others);
    return new Map([...outcomes, ...rest]);
  }

  /** A statement of its own, so that it sees plants whose commit the insert has waited for. */
  private async findStored(
    session: ClientBase,
    plants: readonly KeyedPlant[],
  ): Promise<PlantsById | UnavailableError> {
    if (plants.length === 0) return new Map();
    try {
      return await findKeyed(session, plants);
    } catch (error) {
      return new UnavailableError({ cause: this.sessions.report(error, session) });
    }
  }
}

function makeSessions(where: string | ClientConfig, mayMigrate = true): PostgresSessions {
  try {
    return new PostgresSessions(where, mayMigrate);
  } catch (cause) {
    throw new StoreOpenError('postgres', 'The PostgreSQL settings cannot be used', cause);
  }
}

/** If so, the server has rolled back. An error that ends the session may follow a commit. */
function hasSurvived(session: ClientBase): Promise<boolean> {
  return session.query('SELECT 1').then(
    () => true,
    () => false,
  );
}

function failAll(rows: readonly KeyedPlant[], error: PlantStoreError): RowOutcomes {
  return new Map(rows.map(({ id }) => [id, error]));
}

/** Whether the session was lost while it had a statement to answer. */
function isLost(outcomes: RowOutcomes): boolean {
  return [...outcomes.values()].some((outcome) => outcome instanceof OutcomeUnknownError);
}
