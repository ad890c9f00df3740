import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { OnApplicationShutdown } from '@nestjs/common';
import type { ClientBase, ClientConfig } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../../errors';
import { INT64_MAX, INT64_MIN } from '../../int64';
import type { Plant } from '../../plant';
import { type Insertion, PlantsRepository } from '../../plants.repository';
import { GroupCommit } from '../group-commit';
import { type KeyedPlant, plantBatches, repetitionOutcome } from '../plant-batches';
import { StoreOpenError } from '../store-open.error';
import {
  isAmbiguous,
  isPreparedStatementFault,
  isRetryable,
  isRowFault,
  isServerError,
} from './postgres.errors';
import { PostgresSessions } from './postgres.sessions';
import { findKeyed, findPlant, insertPlants, readPlants } from './postgres.statements';

/** How often a batch is tried that other transactions cause to be rolled back. */
const MAX_ATTEMPTS = 10;

/** Whether a plant was inserted, or why it was not or may not have been. */
type RowOutcome = boolean | PlantStoreError;
type RowOutcomes = ReadonlyMap<bigint, RowOutcome>;
type StoredPlants = ReadonlyMap<bigint, KeyedPlant>;
type Outcome = Insertion | PlantStoreError;

/**
 * Stores plants in PostgreSQL, or in a database that speaks its protocol. Each batch is one
 * statement, which is one transaction.
 */
export class PostgresPlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly commits = new GroupCommit<KeyedPlant, Insertion>({
    ...plantBatches,
    commit: (batch) => this.commit(batch),
    timedOutLimit: 2,
  });
  /**
   * Whether sessions prepare the statement, which saves the server a quarter of its time. A proxy that
   * pools transactions may not support that. The first batch to fail for it turns it off for good.
   */
  private usesPreparedStatement = true;

  private constructor(private readonly sessions: PostgresSessions) {
    super();
  }

  /**
   * Connects and migrates. A database that cannot be used is not an error: the repository is not ready
   * then, and keeps trying.
   *
   * @param where a connection URL with one or more hosts, or settings of the driver
   * @throws StoreOpenError when the URL or the settings are invalid
   */
  static async open(where: string | ClientConfig): Promise<PostgresPlantsRepository> {
    let sessions;
    try {
      sessions = new PostgresSessions(where);
    } catch (cause) {
      throw new StoreOpenError('The PostgreSQL settings cannot be used', cause);
    }
    await sessions.start();
    return new PostgresPlantsRepository(sessions);
  }

  override isReady(): boolean {
    return this.sessions.fault === undefined && !this.commits.isLate;
  }

  override findFault(): Error | undefined {
    return this.sessions.fault;
  }

  override queueLength(): number {
    return this.commits.queueLength;
  }

  override isFull(): boolean {
    return this.commits.isFull;
  }

  async insert(plant: Plant): Promise<boolean> {
    return (await this.submit(plant)) === 'created';
  }

  override insertOnce(plant: Plant, key: string): Promise<Insertion> {
    const { id, name, tag } = plant;
    return this.submit(this.sessions.hasKeys ? { id, name, tag, key: hash('sha256', key) } : plant);
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

  private async submit(plant: KeyedPlant): Promise<Insertion> {
    this.sessions.assertUsable();
    return this.commits.submit(plant);
  }

  /** Inserts the first plant of each id, finds the repetitions of stored ones, and compares. */
  private async commit(batch: readonly KeyedPlant[]): Promise<Outcome[]> {
    this.sessions.assertNotPaused();
    const session = await this.sessions.connect();
    // Of equal keys, a Map holds the last.
    const firsts = new Map(batch.toReversed().map((plant) => [plant.id, plant]));
    // Sorted, so that instances cannot deadlock.
    const rows = [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
    const outcomes = await this.insertRows(session, rows);
    const taken = batch.filter(({ id, key }) => key !== undefined && outcomes.get(id) === false);
    const stored = isLost(outcomes)
      ? new UnavailableError()
      : await this.findStored(session, taken);
    session.release(stored instanceof UnavailableError);
    return batch.map((plant) => {
      const { id } = plant;
      return compare(plant, firsts.get(id), outcomes.get(id), stored);
    });
  }

  /** Commits rows with different ids. A row that the database refuses fails alone. */
  private async insertRows(session: ClientBase, rows: readonly KeyedPlant[]): Promise<RowOutcomes> {
    for (let attempt = 1; ; attempt++) {
      try {
        const insertion = insertPlants(session, rows, this.usesPreparedStatement);
        const inserted = await this.sessions.answerTo(session, insertion);
        this.sessions.confirm();
        return new Map(rows.map(({ id }) => [id, inserted.has(id)]));
      } catch (error) {
        const isAlive = isServerError(error) && (await this.isAlive(session));
        if (!isAlive || isAmbiguous(error)) {
          const cause = this.sessions.report(error, session, !isAlive);
          return failAll(rows, new OutcomeUnknownError({ cause }));
        }
        if (attempt < MAX_ATTEMPTS && isPreparedStatementFault(error)) {
          this.usesPreparedStatement = false;
        } else if (attempt < MAX_ATTEMPTS && isRetryable(error)) {
          await setTimeout(Math.random() * 2 ** attempt);
        } else {
          const cause = this.sessions.report(error, session);
          if (!isRowFault(error)) return failAll(rows, new UnavailableError({ cause }));
          if (rows.length > 1) return this.insertHalves(session, rows, cause);
          return failAll(rows, new PlantStoreError('internal', undefined, { cause }));
        }
      }
    }
  }

  private async insertHalves(
    session: ClientBase,
    rows: readonly KeyedPlant[],
    cause: Error,
  ): Promise<RowOutcomes> {
    const middle = rows.length >> 1;
    const others = rows.slice(middle);
    const outcomes = await this.insertRows(session, rows.slice(0, middle));
    // If the session was lost meanwhile, the other half was never sent.
    const rest = isLost(outcomes)
      ? failAll(others, new UnavailableError({ cause }))
      : await this.insertRows(session, others);
    return new Map([...outcomes, ...rest]);
  }

  /**
   * Whether a session survived an error. If so, the server has rolled back. An error that ends the
   * session may follow a commit.
   */
  private isAlive(session: ClientBase): Promise<boolean> {
    return this.sessions.answerTo(session, session.query('SELECT 1')).then(
      () => true,
      () => false,
    );
  }

  /**
   * Finds plants that have the same ids and keys, or says why it cannot. It is a statement of its own,
   * so that it sees those whose commit the insert has waited for.
   */
  private async findStored(
    session: ClientBase,
    plants: readonly KeyedPlant[],
  ): Promise<StoredPlants | UnavailableError> {
    if (plants.length === 0) return new Map();
    try {
      return await this.sessions.answerTo(session, findKeyed(session, plants));
    } catch (error) {
      return new UnavailableError({ cause: this.sessions.report(error, session) });
    }
  }
}

function failAll(rows: readonly KeyedPlant[], error: PlantStoreError): RowOutcomes {
  return new Map(rows.map(({ id }) => [id, error]));
}

/** Whether the session was lost while it had a statement to answer. */
function isLost(outcomes: RowOutcomes): boolean {
  return [...outcomes.values()].some((outcome) => outcome instanceof OutcomeUnknownError);
}

/**
 * @param first the plant of the batch that was tried for the id
 * @param outcome what became of that one
 * @param stored the plants stored before with the id and key of one of the batch
 */
function compare(
  plant: KeyedPlant,
  first: KeyedPlant | undefined,
  outcome: RowOutcome | undefined,
  stored: StoredPlants | UnavailableError,
): Outcome {
  if (outcome === true) return plant === first ? 'created' : repetitionOutcome(first, plant);
  if (outcome instanceof PlantStoreError) {
    return plant === first ? outcome : new UnavailableError({ cause: outcome });
  }
  if (plant.key === undefined) return 'taken';
  return stored instanceof UnavailableError
    ? stored
    : repetitionOutcome(stored.get(plant.id), plant);
}
