import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import { type KeyedPlant, duplicateOutcome } from '../idempotency';
import { type InsertResult, StoreFailure } from '../store-driver';
import { classifyInSession, classifyReport, type ErrorKind, toFailure } from './postgres.errors';
import {
  findStored,
  insertEachOrGiveUp,
  insertPlants,
  insertPlantsOrGiveUp,
} from './postgres.statements';

/** The maximum number of attempts if other transactions cause the rollback of a batch. */
const MAX_ATTEMPTS = 10;
/** How long a batch may search for its locked rows. After the longest statement, it still ends before it times out. */
const SEARCH_TIME_MS = 2500;
/**
 * How many rows are inserted one by one in a transaction, each in a subtransaction. PostgreSQL keeps so many of a
 * session in shared memory, where others find them fast (documentation, 67.3 Subtransactions).
 */
const MAX_ROWS_ONE_BY_ONE = 64;

type Rows = readonly KeyedPlant[];

/** The outcome of each row by id. A row whose id is taken is missing, and so is a row that was never sent. */
type RowOutcomes = Map<bigint, 'created' | StoreFailure>;

/** Why rows were not stored. */
interface InsertError {
  readonly kind: Exclude<ErrorKind, 'retry'>;
  readonly error: unknown;
}

/** How to insert a batch. */
export interface InsertOptions {
  /** The name of the store, for messages. */
  readonly store: string;
  /** Whether the database probably rejects rows of the batch: then they are inserted one by one at once. */
  readonly expectsRejections: boolean;
  /** Is told the error after which nothing more can be sent. Returns the failure of plants that were not sent. */
  readonly onLost: (error: unknown) => StoreFailure;
}

/**
 * Inserts the first plant of each id of a batch. A later plant of the batch is compared with the first one, and a
 * plant whose id was already stored with the stored plant. If a row is rejected or locked, only plants with its id fail.
 * @returns one outcome or failure per plant, in order
 */
export async function insertBatch(
  session: ClientBase,
  batch: Rows,
  { store, expectsRejections, onLost }: InsertOptions,
): Promise<InsertResult[]> {
  // A Map keeps the last of equal keys.
  const firsts = new Map(batch.toReversed().map((plant) => [plant.id, plant]));
  // Sorted, so that batches with common ids cannot deadlock.
  const rows = [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  const outcomes: RowOutcomes = new Map();
  const stored = new Map<bigint, KeyedPlant>();
  let unsent: StoreFailure | undefined;
  try {
    const rest = expectsRejections ? await insertOneByOne(session, rows, store, outcomes) : rows;
    await insertRows(session, rest, store, outcomes);
    await addStored(session, batch, outcomes, stored);
    const missing = rows.filter(({ id }) => !outcomes.has(id) && !stored.has(id));
    if (missing.length > 0) {
      // Somebody may have deleted the plants between the two statements.
      await insertRows(session, missing, store, outcomes);
      await addStored(session, missing, outcomes, stored);
    }
  } catch (error) {
    unsent = onLost(error);
  }

  return batch.map((plant) => {
    const first = firsts.get(plant.id);
    const outcome = outcomes.get(plant.id);
    if (outcome instanceof StoreFailure) return outcome;
    if (outcome === 'created') return plant === first ? outcome : duplicateOutcome(first, plant);
    if (unsent) return unsent;
    const found = stored.get(plant.id);
    if (found) return duplicateOutcome(found, plant);
    const reason = 'A trigger or a rule of the table plants prevented the insert of a plant.';
    return new StoreFailure('row', reason);
  });
}

/** Finds the plants whose insert has no outcome, by a statement that sees what the insert waited for. */
async function addStored(
  session: ClientBase,
  plants: Rows,
  outcomes: RowOutcomes,
  stored: Map<bigint, KeyedPlant>,
): Promise<void> {
  const taken = plants.filter(({ id }) => !outcomes.has(id));
  if (taken.length === 0) return;
  for (const [id, plant] of await findStored(session, taken)) stored.set(id, plant);
}

/**
 * Inserts rows with different ids and records their outcomes. If one of them is rejected or locked, sends halves, and
 * halves of these, until only that row fails. A small part with a rejected row is sent once more row by row, because
 * halves cost more than that if many rows are rejected.
 * @throws the error after which nothing more can be sent
 */
async function insertRows(
  session: ClientBase,
  rows: Rows,
  store: string,
  outcomes: RowOutcomes,
): Promise<void> {
  /** The parts that remain to be sent, in reverse order of ids. */
  const parts: Rows[] = [rows];
  /** When to give up the search for locked rows; undefined while none has been met. */
  let searchEnd: number | undefined;
  for (let part = parts.pop(); part; part = parts.pop()) {
    if (part.length === 0) continue;
    const failed = await insertPart(session, part, outcomes, searchEnd !== undefined);
    if (!failed) continue;

    const { kind, error } = failed;
    if (kind === 'locked') searchEnd ??= performance.now() + SEARCH_TIME_MS;
    const hasTime = searchEnd === undefined || performance.now() < searchEnd;
    if ((kind === 'row' || kind === 'locked') && part.length > 1 && hasTime) {
      const rest = kind === 'row' ? await insertOneByOne(session, part, store, outcomes) : part;
      const middle = Math.ceil(rest.length / 2);
      parts.push(rest.slice(middle), rest.slice(0, middle));
      continue;
    }
    const failure = toFailure(store, error, kind, 'batch');
    for (const { id } of part) outcomes.set(id, failure);
    if (kind === 'unknown') throw error;
    if (hasTime) continue;
    // The rest may be locked as well, by a lock on the table or by a large transaction.
    for (const { id } of parts.flat()) outcomes.set(id, failure);
    return;
  }
}

/**
 * Inserts rows one by one in one transaction, and records which of them were created or rejected. Does nothing if there
 * are too many.
 * @returns the rows that must still be sent
 * @throws the error after which nothing more can be sent
 */
async function insertOneByOne(
  session: ClientBase,
  rows: Rows,
  store: string,
  outcomes: RowOutcomes,
): Promise<Rows> {
  if (rows.length > MAX_ROWS_ONE_BY_ONE) return rows;
  try {
    const { inserted, failed } = await insertEachOrGiveUp(session, rows);
    for (const id of inserted) outcomes.set(id, 'created');
    const rest = new Set<bigint>();
    for (const { id, error } of failed) {
      const kind = classifyReport(error);
      if (kind === 'row') outcomes.set(id, toFailure(store, error, kind));
      else rest.add(id);
    }
    return rows.filter(({ id }) => rest.has(id));
  } catch (error) {
    const kind = await classifyInSession(error, session);
    if (kind !== 'unknown') return rows;
    const failure = toFailure(store, error, kind, 'batch');
    for (const { id } of rows) outcomes.set(id, failure);
    throw error;
  }
}

/** Inserts rows all together or not at all, and records what was created. Returns why they were not stored. */
async function insertPart(
  session: ClientBase,
  rows: Rows,
  outcomes: RowOutcomes,
  isSearching: boolean,
): Promise<InsertError | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      // Prepared statements save the server 25% of its CPU time. Some proxies do not support them.
      const isPrepared = attempt === 1;
      const insert = isSearching ? insertPlantsOrGiveUp : insertPlants;
      for (const id of await insert(session, rows, isPrepared)) outcomes.set(id, 'created');
      return undefined;
    } catch (error) {
      const kind = await classifyInSession(error, session);
      if (kind !== 'retry') return { kind, error };
      if (attempt === MAX_ATTEMPTS) return { kind: 'notStored', error };
      await sleep(Math.random() * 2 ** attempt);
    }
  }
}
