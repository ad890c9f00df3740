/** The thread that owns the SQLite connection, because a sync blocks: requests in, replies out, in order. */
import { dirname } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { Insertion } from '../../plants.repository';
import type { KeyedPlant } from '../keyed-plant';
import { CutFileError, describeError, isBusy, resultCodeOf, SQLITE_FULL } from './sqlite.errors';
import { type FormerStore, makeDirectory } from './sqlite.files';
import { assertWritable } from './sqlite.integrity';
import { closeAndKeepLog, emptyLog } from './sqlite.recovery';
import { insertPlant, readPlants } from './sqlite.statements';
import { checkFiles, LOG_LIMIT, openDatabase, type Store } from './sqlite.store';
import type { SqliteReply, SqliteRequest, SqliteWorkerData } from './sqlite.messages';

/** Milliseconds without a request before a log above this limit is emptied, and between two attempts. */
const QUIET = 1000;

const { path, identity } = workerData as SqliteWorkerData;

/** Undefined after a failure. The next request opens it again. */
let store: Store | undefined;
/** Undefined until the store was open for the first time. */
let former: FormerStore | undefined =
  identity === undefined ? undefined : { identity, state: 'unseen' };

/** Empties a long log. Otherwise the next creation would wait for this. */
const quiet = setTimeout(() => {
  if (store === undefined || store.files.logSize <= LOG_LIMIT) return;
  try {
    checkFiles(store);
    emptyLog(store.database);
    checkFiles(store);
  } catch (error) {
    discardStore(error);
  }
  quiet.refresh();
}, QUIET).unref();

reply(() => {
  if (!former) makeDirectory(dirname(path));
  return open().identity;
});

parentPort?.on('message', (request: SqliteRequest) => {
  if (request === 'close') {
    closeStore();
    parentPort?.close();
    return;
  }
  reply(() => perform(store ?? open(), request));
  quiet.refresh();
});

function open(): Store {
  store = openDatabase(path, former);
  return store;
}

function perform(current: Store, request: Exclude<SqliteRequest, 'close'>): unknown {
  if (request !== 'probe') {
    return 'from' in request ? readPlants(current, request) : commit(current, request);
  }
  checkFiles(current);
  assertWritable(current.database);
  return undefined;
}

function reply(request: () => unknown): void {
  let message: SqliteReply;
  try {
    message = { result: 'done', value: request() };
  } catch (error) {
    message = { result: recover(error), reason: describeError(error, path) };
  }
  parentPort?.postMessage(message);
}

function recover(error: unknown): 'refused' | 'unknown' {
  const { phase, database } = store ?? { phase: 'before' };
  // Nothing is wrong with the store where another process holds a lock.
  if (phase !== 'before' || !isBusy(error) || database?.isTransaction) discardStore(error);
  // On a full disk the commit record itself could not be written. Any other failed COMMIT may have
  // written it: after a failed sync that is unknown.
  const isFull = resultCodeOf(error) === SQLITE_FULL;
  return phase === 'before' || (phase === 'during' && isFull) ? 'refused' : 'unknown';
}

function commit(current: Store, batch: readonly KeyedPlant[]): Insertion[] {
  const { database } = current;
  checkFiles(current);
  database.exec('BEGIN IMMEDIATE');
  const insertions = batch.map((plant) => {
    current.lastId = plant.id;
    return insertPlant(current, plant);
  });
  current.phase = 'during';
  database.exec('COMMIT');
  current.phase = 'after';
  checkFiles(current);
  current.phase = 'before';
  return insertions;
}

/** Closing moves the log into the database file, if that is still the store. */
function closeStore(): void {
  try {
    if (store) {
      checkFiles(store);
      store.logKeeper.close();
    }
  } catch {
    // What was committed is in the log, which stays.
  }
  discardStore();
}

/** Leaves file and log as they are: the file may be another one. */
function discardStore(error?: unknown): void {
  if (!store) return;
  const { identity, files, lastId } = store;
  former = { identity, state: error instanceof CutFileError ? 'cut' : 'whole', files, lastId };
  closeAndKeepLog(store.database, store.logKeeper);
  store = undefined;
}
