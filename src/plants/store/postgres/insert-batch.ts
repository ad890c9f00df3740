import type { InsertOutcome } from '../../plants.repository';
import { type KeyedPlant, duplicateOutcome } from '../idempotency';
import { StoreFailure } from '../store-driver';

/** The maximum number of attempts if other transactions cause the rollback of a batch. */
const MAX_ATTEMPTS = 10;

/** The meaning of an error of a statement for its rows and its session. */
export interface StatementFailure {
  /**
   * - `retry`: nothing was stored; another attempt may succeed.
   * - `row`: nothing was stored; one of the rows is the cause.
   * - `batch`: nothing was stored; the next statement may succeed.
   * - `session`: the rows may be stored; nothing more can be sent.
   */
  readonly reach: 'retry' | 'row' | 'batch' | 'session';
  readonly failure: StoreFailure;
}

/** The statements of a database that inserts several rows with different ids at once. */
export interface BatchStatements {
  /**
   * Inserts rows with different ids in one transaction. Resolves to the ids that did not exist yet.
   *
   * @param attempt the number of this attempt, from 1
   */
  insert(rows: readonly KeyedPlant[], attempt: number): Promise<ReadonlySet<bigint>>;
  /** Finds the stored plants that have the ids of some rows, with their content if they have the key of a row. */
  findStored(rows: readonly KeyedPlant[]): Promise<ReadonlyMap<bigint, KeyedPlant>>;
  /**
   * Classifies the error of a statement, and waits if there may be another attempt.
   *
   * @param attempt the number of attempts so far
   */
  handle(error: unknown, attempt: number): Promise<StatementFailure>;
}

/** The outcome of each row by id. A row that was never sent is missing. */
type RowOutcomes = Map<bigint, 'created' | 'taken' | StoreFailure>;

/**
 * Inserts a batch in which ids and keys may be repeated. Inserts the first plant of each id. A later plant of the
 * batch is compared with the first one, and a plant whose id was already stored with the stored plant. If the
 * database rejects a row, only the plants with its id fail.
 *
 * @returns one outcome or failure per plant, in order
 */
export async function insertBatch(
  batch: readonly KeyedPlant[],
  statements: BatchStatements,
): Promise<(InsertOutcome | StoreFailure)[]> {
  // A Map keeps the last of equal keys.
  const firsts = new Map(batch.toReversed().map((plant) => [plant.id, plant]));
  // Sorted, so that batches with common ids cannot deadlock.
  const rows = [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  const outcomes: RowOutcomes = new Map();
  const lost = await insertRows(rows, statements, outcomes);
  // The failure of the plants for which nothing more can be sent.
  const unsent = lost && new StoreFailure('notStored', lost.message, lost.code);
  const taken = batch.filter(({ id }) => outcomes.get(id) === 'taken');
  const stored = unsent ?? (await findTaken(taken, statements));

  return batch.map((plant) => {
    const first = firsts.get(plant.id);
    const outcome = outcomes.get(plant.id) ?? unsent ?? 'taken';
    if (outcome instanceof StoreFailure) return outcome;
    if (outcome === 'created') return plant === first ? outcome : duplicateOutcome(first, plant);
    if (stored instanceof StoreFailure) return stored;
    const found = stored.get(plant.id);
    if (found) return duplicateOutcome(found, plant);
    const reason = 'A trigger or a rule of the table plants prevented the insert of a plant.';
    return new StoreFailure('row', reason);
  });
}

/**
 * Inserts rows with different ids and records their outcomes.
 *
 * @returns the failure that ended the session; undefined if it is still usable. If not, nothing more is sent
 */
async function insertRows(
  rows: readonly KeyedPlant[],
  statements: BatchStatements,
  outcomes: RowOutcomes,
  attempt = 1,
): Promise<StoreFailure | undefined> {
  try {
    const inserted = await statements.insert(rows, attempt);
    for (const { id } of rows) outcomes.set(id, inserted.has(id) ? 'created' : 'taken');
    return undefined;
  } catch (error) {
    const { reach, failure } = await statements.handle(error, attempt);
    if (reach === 'retry' && attempt < MAX_ATTEMPTS) {
      return insertRows(rows, statements, outcomes, attempt + 1);
    }
    if (reach === 'row' && rows.length > 1) {
      const middle = Math.floor(rows.length / 2);
      return (
        (await insertRows(rows.slice(0, middle), statements, outcomes)) ??
        insertRows(rows.slice(middle), statements, outcomes)
      );
    }
    for (const { id } of rows) outcomes.set(id, failure);
    return reach === 'session' ? failure : undefined;
  }
}

/**
 * Finds the stored plants of the rows whose ids are taken. It is a separate statement, so that it sees plants committed
 * by transactions that the insert waited for.
 */
async function findTaken(
  rows: readonly KeyedPlant[],
  statements: BatchStatements,
): Promise<ReadonlyMap<bigint, KeyedPlant> | StoreFailure> {
  if (rows.length === 0) return new Map();
  try {
    return await statements.findStored(rows);
  } catch (error) {
    const { message, code } = (await statements.handle(error, 1)).failure;
    return new StoreFailure('notStored', message, code);
  }
}
