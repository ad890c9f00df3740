import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../errors/errors';
import type { InsertOutcome } from '../../plants.repository';
import { type KeyedPlant, duplicateOutcome } from '../keyed-plant';

/** The maximum number of attempts if other transactions cause the rollback of a batch. */
const MAX_ATTEMPTS = 10;

/** The meaning of an error of a statement for its rows. */
export interface StatementError {
  /**
   * - `retry`: nothing was stored; another attempt may succeed.
   * - `row`: nothing was stored; one of the rows is the cause.
   * - `batch`: nothing was stored; the next statement may succeed.
   * - `session`: the rows may be stored; nothing more can be sent.
   */
  readonly reach: 'retry' | 'row' | 'batch' | 'session';
  /** The error, for an operator. */
  readonly cause: Error;
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
  handle(error: unknown, attempt: number): Promise<StatementError>;
}

/** The outcome of each row by id. A row that was never sent is missing. */
type RowOutcomes = Map<bigint, 'created' | 'taken' | PlantStoreError>;

/**
 * Inserts a batch in which ids and keys may be repeated. Inserts the first plant of each id. A later plant of the
 * batch is compared with the first one, and a plant whose id was already stored with the stored plant. If the
 * database rejects a row, only the plants with its id fail.
 *
 * @returns one outcome or error per plant, in order
 */
export async function insertBatch(
  batch: readonly KeyedPlant[],
  statements: BatchStatements,
): Promise<(InsertOutcome | PlantStoreError)[]> {
  // A Map keeps the last of equal keys.
  const firsts = new Map(batch.toReversed().map((plant) => [plant.id, plant]));
  // Sorted, so that instances cannot deadlock.
  const rows = [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  const outcomes: RowOutcomes = new Map();
  const isUsable = await insertRows(rows, statements, outcomes);
  const taken = batch.filter(({ id }) => outcomes.get(id) === 'taken');
  const stored = isUsable ? await findStored(taken, statements) : new UnavailableError();

  return batch.map((plant) => {
    const first = firsts.get(plant.id);
    const outcome = outcomes.get(plant.id) ?? new UnavailableError();
    if (outcome instanceof PlantStoreError) return outcome;
    if (outcome === 'created') return plant === first ? outcome : duplicateOutcome(first, plant);
    if (stored instanceof UnavailableError) return stored;
    const found = stored.get(plant.id);
    if (found) return duplicateOutcome(found, plant);
    const cause = new Error(
      'A trigger or a rule of the table plants prevented the insert of a plant.',
    );
    return new PlantStoreError('internal', undefined, { cause });
  });
}

/**
 * Inserts rows with different ids and records their outcomes.
 *
 * @returns whether the session is still usable; if not, nothing more is sent
 */
async function insertRows(
  rows: readonly KeyedPlant[],
  statements: BatchStatements,
  outcomes: RowOutcomes,
  attempt = 1,
): Promise<boolean> {
  try {
    const inserted = await statements.insert(rows, attempt);
    for (const { id } of rows) outcomes.set(id, inserted.has(id) ? 'created' : 'taken');
    return true;
  } catch (error) {
    const { reach, cause } = await statements.handle(error, attempt);
    if (reach === 'retry' && attempt < MAX_ATTEMPTS) {
      return insertRows(rows, statements, outcomes, attempt + 1);
    }
    if (reach === 'row' && rows.length > 1) {
      const middle = Math.floor(rows.length / 2);
      if (!(await insertRows(rows.slice(0, middle), statements, outcomes))) return false;
      return insertRows(rows.slice(middle), statements, outcomes);
    }
    for (const { id } of rows) outcomes.set(id, toPlantStoreError({ reach, cause }));
    return reach !== 'session';
  }
}

/**
 * Finds the stored plants of some rows. It is a separate statement, so that it sees plants committed by
 * transactions that the insert waited for.
 */
async function findStored(
  rows: readonly KeyedPlant[],
  statements: BatchStatements,
): Promise<ReadonlyMap<bigint, KeyedPlant> | UnavailableError> {
  if (rows.length === 0) return new Map();
  try {
    return await statements.findStored(rows);
  } catch (error) {
    const { cause } = await statements.handle(error, 1);
    return new UnavailableError({ cause });
  }
}

function toPlantStoreError({ reach, cause }: StatementError): PlantStoreError {
  if (reach === 'session') return new OutcomeUnknownError({ cause });
  if (reach === 'row') return new PlantStoreError('internal', undefined, { cause });
  return new UnavailableError({ cause });
}
