import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { ClientBase, ClientConfig } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../errors/errors';
import type { Plant } from '../../plant';
import type { Insertion } from '../../plants.repository';
import type { CircuitBreaker } from '../circuit-breaker';
import { CommittingPlantsRepository } from '../committing-plants.repository';
import { type KeyedPlant, repetitionOutcome } from '../plant-batches';
import type { Verdict } from './postgres.errors';
import { PostgresSessions } from './postgres.sessions';
import { lacksTls } from './postgres.settings';
import { commitEmpty, findKeyed, findPlant, insertPlants, readPlants } from './postgres.statements';

const NO_TLS =
  'The connection to PostgreSQL on another machine is not encrypted: add sslmode=verify-full to its URL, or sslmode=disable to say that this is meant.';

/** How often a batch is tried if other transactions cause its rollback. */
const MAX_ATTEMPTS = 10;

/** By id, what became of the row with it. A row that was never sent is missing. */
type RowOutcomes = Map<bigint, 'created' | 'taken' | PlantStoreError>;

/**
 * Stores plants in PostgreSQL, or in a database that speaks its protocol. Each batch is one
 * statement, which is one transaction.
 */
export class PostgresPlantsRepository extends CommittingPlantsRepository {
  protected readonly breaker: CircuitBreaker;
  /** Prepared statements save the server a quarter of its time. Some proxies do not support them. */
  private usesPreparedStatement = true;

  private constructor(private readonly sessions: PostgresSessions) {
    super();
    this.breaker = sessions.breaker;
  }

  /**
   * Connects, and creates the store if it is missing. A database that cannot be used is not an error: the repository is not ready
   * then, and keeps trying.
   *
   * @param where a connection URL, or settings of the driver, whose `connectionString` may be one. They
   *   are read again after each fault.
   * @throws StoreOpenError when the URL or the settings are invalid
   */
  static async open(where: string | ClientConfig): Promise<PostgresPlantsRepository> {
    const sessions = new PostgresSessions(where);
    if (lacksTls(where)) new Logger('PlantStore').warn(NO_TLS);
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
    const sessions = new PostgresSessions(where, false);
    try {
      await sessions.start();
      const { name, store, breaker } = sessions;
      if (breaker.fault) throw breaker.fault;
      if (!store?.hasTable) return `${name}, which has no table plants: the service will create it`;
      return `${name}, the store ${store.identity ?? 'without an identity'}`;
    } finally {
      await sessions.close();
    }
  }

  override insert(plant: Plant, keyDigest?: string): Promise<Insertion> {
    const cause = this.findFault();
    // The server may have fallen silent. Then further creations would only wait too.
    if (cause || this.commits.hasLateItem) return Promise.reject(new UnavailableError({ cause }));
    // A table of the operator may have no column for keys.
    return super.insert(plant, this.sessions.store?.hasKeys ? keyDigest : undefined);
  }

  async find(id: bigint): Promise<Plant | undefined> {
    return this.sessions.read((session) => findPlant(session, id));
  }

  async page(after: bigint | undefined, limit: number): Promise<Plant[]> {
    return this.sessions.read((session) => readPlants(session, after, limit));
  }

  protected probe(): Promise<void> {
    return this.sessions.read(commitEmpty);
  }

  protected close(): Promise<void> {
    return this.sessions.close();
  }

  /** Inserts the first plant of each id, finds the repetitions of stored ones, and compares. */
  protected async commit(batch: readonly KeyedPlant[]): Promise<(Insertion | PlantStoreError)[]> {
    const cause = this.sessions.breaker.pauseReason;
    if (cause) throw new UnavailableError({ cause });
    const session = await this.sessions.connect();
    // A Map keeps the last of equal keys.
    const firsts = new Map(batch.toReversed().map((plant) => [plant.id, plant]));
    // Sorted, so that instances cannot deadlock.
    const rows = [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
    const outcomes: RowOutcomes = new Map();
    const isUsable = await this.insertRows(session, rows, outcomes);
    const taken = batch.filter(({ id, keyDigest }) => keyDigest && outcomes.get(id) === 'taken');
    const stored = isUsable ? await this.findStored(session, taken) : new UnavailableError();
    session.release(stored instanceof UnavailableError);

    return batch.map((plant) => {
      const first = firsts.get(plant.id);
      const outcome = outcomes.get(plant.id) ?? new UnavailableError();
      if (plant === first && outcome !== 'taken') return outcome;
      if (outcome instanceof PlantStoreError) return new UnavailableError({ cause: outcome });
      if (outcome === 'created') return repetitionOutcome(first, plant);
      if (plant.keyDigest === undefined) return 'taken';
      return stored instanceof UnavailableError
        ? stored
        : repetitionOutcome(stored.get(plant.id), plant);
    });
  }

  /**
   * Commits rows with different ids. A row that the database refuses fails alone.
   *
   * @returns whether the session can be used further; after its loss nothing is sent
   */
  private async insertRows(
    session: ClientBase,
    rows: readonly KeyedPlant[],
    outcomes: RowOutcomes,
    attempt = 1,
  ): Promise<boolean> {
    try {
      const inserted = await insertPlants(session, rows, this.usesPreparedStatement);
      this.sessions.breaker.confirm();
      for (const { id } of rows) outcomes.set(id, inserted.has(id) ? 'created' : 'taken');
      return true;
    } catch (error) {
      const { verdict, fault } = await this.sessions.report(error, session);
      if (verdict === 'unprepared') this.usesPreparedStatement = false;
      if (['again', 'unprepared'].includes(verdict) && attempt < MAX_ATTEMPTS) {
        await setTimeout(Math.random() * 2 ** attempt);
        return this.insertRows(session, rows, outcomes, attempt + 1);
      }
      if (verdict === 'row' && rows.length > 1) {
        const middle = Math.floor(rows.length / 2);
        if (!(await this.insertRows(session, rows.slice(0, middle), outcomes))) return false;
        return this.insertRows(session, rows.slice(middle), outcomes);
      }
      for (const { id } of rows) outcomes.set(id, toPlantStoreError(verdict, fault));
      return verdict !== 'unknown' && verdict !== 'lost';
    }
  }

  /** A statement of its own, so that it sees plants whose commit the insert has waited for. */
  private async findStored(
    session: ClientBase,
    plants: readonly KeyedPlant[],
  ): Promise<ReadonlyMap<bigint, KeyedPlant> | UnavailableError> {
    if (plants.length === 0) return new Map();
    try {
      return await findKeyed(session, plants);
    } catch (error) {
      return new UnavailableError({ cause: (await this.sessions.report(error, session)).fault });
    }
  }
}

function toPlantStoreError(verdict: Verdict, cause: Error): PlantStoreError {
  if (verdict === 'unknown' || verdict === 'lost') return new OutcomeUnknownError({ cause });
  if (verdict === 'row') return new PlantStoreError('internal', undefined, { cause });
  return new UnavailableError({ cause });
}
