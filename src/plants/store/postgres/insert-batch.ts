import { setTimeout as sleep } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import type { InsertOutcome } from '../../plants.repository';
import { type KeyedPlant, duplicateOutcome } from '../idempotency';
import { StoreFailure } from '../store-driver';
import { classifyInSession, toFailure } from './postgres.errors';
import { findStored, insertPlants } from './postgres.statements';

/** The maximum number of attempts if other transactions cause the rollback of a batch. */
const MAX_ATTEMPTS = 10;

/** The outcome of each row by id. A row whose id is taken is missing, and so is a row that was never sent. */
type RowOutcomes = Map<bigint, 'created' | StoreFailure>;

/**
 * Inserts the first plant of each id of a batch. A later plant of the batch is compared with the first one, and a
 * plant whose id was already stored with the stored plant. If the database rejects a row, only plants with its id fail.
 * @param onLost is told the error after which nothing more can be sent, and returns the failure of unsent plants
 * @returns one outcome or failure per plant, in order
 */
export async function insertBatch(
  session: ClientBase,
  batch: readonly KeyedPlant[],
  store: string,
  onLost: (error: unknown) => StoreFailure,
): Promise<(InsertOutcome | StoreFailure)[]> {
  // A Map keeps the last of equal keys.
  const firsts = new Map(batch.toReversed().map((plant) => [plant.id, plant]));
  // Sorted, so that batches with common ids cannot deadlock.
  const rows = [...firsts.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  const outcomes: RowOutcomes = new Map();
  let stored: ReadonlyMap<bigint, KeyedPlant> = new Map();
  let unsent: StoreFailure | undefined;
  try {
    await insertRows(session, rows, store, outcomes);
    const taken = batch.filter(({ id }) => !outcomes.has(id));
    // A separate statement, so that it sees plants committed by transactions that the insert waited for.
    if (taken.length > 0) stored = await findStored(session, taken);
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

/** Inserts rows with different ids and records their outcomes. Throws the error after which nothing more can be sent. */
async function insertRows(
  session: ClientBase,
  rows: readonly KeyedPlant[],
  store: string,
  outcomes: RowOutcomes,
  attempt = 1,
): Promise<void> {
  try {
    // Prepared statements save the server 25% of its CPU time. Some proxies do not support them.
    const inserted = await insertPlants(session, rows, attempt === 1);
    for (const id of inserted) outcomes.set(id, 'created');
  } catch (error) {
    const kind = await classifyInSession(error, session);
    if (kind === 'retry' && attempt < MAX_ATTEMPTS) {
      await sleep(Math.random() * 2 ** attempt);
      await insertRows(session, rows, store, outcomes, attempt + 1);
    } else if (kind === 'row' && rows.length > 1) {
      const middle = Math.floor(rows.length / 2);
      await insertRows(session, rows.slice(0, middle), store, outcomes);
      await insertRows(session, rows.slice(middle), store, outcomes);
    } else {
      const failure = toFailure(store, error, kind === 'retry' ? 'notStored' : kind);
      for (const { id } of rows) outcomes.set(id, failure);
      if (kind === 'unknown') throw error;
    }
  }
}
