/**
 * The thread that owns the SQLite connection, because a sync blocks its thread. It replies to requests in order.
 *
 * It depends on undocumented behavior of SQLite: the last connection that closes neither checkpoints nor deletes a
 * write-ahead log if the database file was moved, replaced or deleted. Tested with SQLite 3.51.3 and 3.53.4.
 * `sqlite-plants.repository.spec.ts` fails if this behavior changes.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { InsertOutcome } from '../../plants.repository';
import type { KeyedPlant } from '../idempotency';
import type { SqliteFailure, SqliteReply, SqliteRequest } from './sqlite.driver';
import { describeError, extendedCodeOf, isBusy, isDiskFull } from './sqlite.errors';
import { insertPlant, readPlants } from './sqlite.statements';
import { assertSameFiles, assertWritable, openStore, type Store } from './sqlite.store';
import { checkpoint, closeWithoutCheckpoint, isWalLarge } from './sqlite.wal';

const path = workerData as string;
/** After how many plants the size of the WAL is measured: doing it for every commit would take 4% of the CPU time. */
const PLANTS_PER_MEASUREMENT = 250;

/** Whether a COMMIT has begun and its result is not known. */
let isCommitting = false;
let plantsSinceMeasurement = 0;

try {
  const store = openStore(path);
  send({ value: store.foundVersion });
  parentPort?.on('message', (request: SqliteRequest) => {
    send(reply(store, request));
    if (request.kind === 'close') parentPort?.close();
    else if (plantsSinceMeasurement >= PLANTS_PER_MEASUREMENT) copyLargeWal(store);
  });
} catch (error) {
  // Without a listener, the thread ends.
  send(toFailure(error));
}

function send(message: SqliteReply): void {
  parentPort?.postMessage(message);
}

function toFailure(error: unknown, kind: SqliteFailure['kind'] = 'notStored'): SqliteFailure {
  return { kind, reason: describeError(error, path), code: extendedCodeOf(error) };
}

function reply(store: Store, request: SqliteRequest): SqliteReply {
  try {
    return { value: perform(store, request) };
  } catch (error) {
    // A full disk or a lock of another process has kept the COMMIT from being written. After any other failure of a
    // COMMIT, such as a failed sync, its outcome is unclear.
    const isFinal =
      request.kind === 'close' || (isCommitting && !isDiskFull(error) && !isBusy(error));
    isCommitting = false;
    if (isFinal) closeWithoutCheckpoint(store.database, path);
    else if (store.database.isTransaction) store.database.exec('ROLLBACK');
    return toFailure(error, isFinal ? 'final' : 'notStored');
  }
}

/** Runs after the reply, so that no plant waits for it. If it fails, the thread ends, which is final. */
function copyLargeWal(store: Store): void {
  plantsSinceMeasurement = 0;
  try {
    if (isWalLarge(store.database)) checkpoint(store.database);
  } catch (error) {
    closeWithoutCheckpoint(store.database, path);
    throw new Error(describeError(error, path), { cause: error });
  }
}

function perform(store: Store, request: SqliteRequest): unknown {
  switch (request.kind) {
    case 'commit':
      return commit(store, request.batch);
    case 'read':
      return readPlants(store, request.range);
    case 'probe':
      assertSameFiles(store);
      assertWritable(store.database);
      return undefined;
    case 'close':
      checkpoint(store.database);
      store.database.close();
      return undefined;
  }
}

function commit(store: Store, batch: readonly KeyedPlant[]): (InsertOutcome | SqliteFailure)[] {
  const { database } = store;
  database.exec('BEGIN IMMEDIATE');
  const outcomes = batch.map((plant) => insertPlant(store, plant));
  assertSameFiles(store);
  isCommitting = true;
  database.exec('COMMIT');
  isCommitting = false;
  plantsSinceMeasurement += batch.length;
  return outcomes;
}
