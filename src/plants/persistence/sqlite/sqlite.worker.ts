/**
 * The thread that owns the SQLite connection, because a sync blocks its thread. It replies to requests in
 * order.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { InsertOutcome } from '../../plants.repository';
import type { KeyedPlant } from '../keyed-plant';
import { ChangedFilesError, describeError, isBusy, isFull } from './sqlite.errors';
import { closeWithoutCheckpoint, tryTruncateWal } from './sqlite.recovery';
import { insertPlant, readPlants } from './sqlite.statements';
import {
  assertSameFiles,
  assertWritable,
  openStore,
  type Store,
  WAL_LIMIT_BYTES,
} from './sqlite.store';
import type { SqliteReply, SqliteRequest, SqliteWorkerData } from './sqlite.thread';

/** Idle time before a WAL above the limit is truncated, and the interval between attempts. */
const IDLE_TRUNCATE_DELAY_MS = 1000;

const { path, ...data } = workerData as SqliteWorkerData;
/** The id of the file that was opened first. Only this file is reopened. */
let { databaseId } = data;
/** Undefined after a failure. The next request reopens the store. */
let store: Store | undefined;
/** Set once the files were changed. After that, the store is not reopened. */
let changed: ChangedFilesError | undefined;
/** Whether the plants of the current batch may be stored. */
let mayBeStored = false;

/** Truncates a long WAL while idle, so that the next commit does not have to. */
const idleTimer = setTimeout(() => {
  if (store === undefined || store.files.wal.bytes <= WAL_LIMIT_BYTES) return;
  try {
    assertSameFiles(store);
    tryTruncateWal(store.database);
  } catch (error) {
    recover(error);
  }
  idleTimer.refresh();
}, IDLE_TRUNCATE_DELAY_MS).unref();

reply(() => (databaseId = open().files.database.id));
if (!store) parentPort?.close();

parentPort?.on('message', (request: SqliteRequest) => {
  reply(() => perform(request));
  if (request === 'close') parentPort?.close();
  else idleTimer.refresh();
});

function reply(work: () => unknown): void {
  let message: SqliteReply;
  try {
    message = { value: work() };
  } catch (error) {
    message = recover(error);
  }
  parentPort?.postMessage(message);
}

/** Reopens the store after a failure, checks its files, and returns it. */
function open(): Store {
  if (changed) throw changed;
  store ??= openStore(path, databaseId);
  assertSameFiles(store);
  return store;
}

function perform(request: SqliteRequest): unknown {
  if (request === 'close') close();
  else if (request === 'probe') assertWritable(open().database);
  else return 'from' in request ? readPlants(open(), request) : commit(open(), request);
  return undefined;
}

function commit(current: Store, batch: readonly KeyedPlant[]): InsertOutcome[] {
  current.database.exec('BEGIN IMMEDIATE');
  const outcomes = batch.map((plant) => insertPlant(current, plant));
  mayBeStored = true;
  current.database.exec('COMMIT');
  assertSameFiles(current);
  mayBeStored = false;
  return outcomes;
}

/** Checkpoints, if the files are still those of the store. */
function close(): void {
  if (!store) return;
  assertSameFiles(store);
  store.checkpointBlocker.close();
  store.database.close();
  store = undefined;
}

function recover(error: unknown): SqliteReply {
  // On a full disk, the commit record itself could not be written. Any other failed COMMIT may have written
  // it: after a failed sync, that is unknown.
  const isUnknown = mayBeStored && !isFull(error);
  // If another process merely holds a lock, the store itself is fine.
  if (mayBeStored || !isBusy(error) || store?.database.isTransaction) {
    if (error instanceof ChangedFilesError) changed = error;
    // Leave the database file and the WAL unchanged, because they may belong to another store.
    if (store) closeWithoutCheckpoint(store.database, store.checkpointBlocker);
    store = undefined;
  }
  mayBeStored = false;
  return { error: describeError(error, path), mayBeStored: isUnknown };
}
