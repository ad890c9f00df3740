/** The thread that owns the SQLite connection, because a sync blocks: requests in, replies out, in order. */
import { dirname } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { Insertion } from '../../plants.repository';
import {
  describeError,
  ForeignLogError,
  isBusy,
  resultCodeOf,
  SQLITE_CORRUPT,
  SQLITE_FULL,
} from './sqlite.errors';
import { logPath, makeDirectory, readFiles, type StoreFiles } from './sqlite.files';
import { assertSameStore, assertWritable, withoutWaiting } from './sqlite.integrity';
import { closeAndKeepLog, emptyLog } from './sqlite.recovery';
import { insertPlant, readPlants } from './sqlite.statements';
import { checkFiles, checkOwnFile, LOG_LIMIT, openDatabase, type Store } from './sqlite.store';
import type { SqliteBatch, SqliteReply, SqliteRequest, SqliteWorkerData } from './sqlite.thread';

/** Milliseconds without a request before a log above this limit is emptied, and between two attempts. */
const QUIET = 1000;

const data = workerData as SqliteWorkerData;
const { path } = data;
let { identity } = data;

/** Undefined after a failure. The next request opens it again. */
let store: Store | undefined;
/** The files of the store when it was last in order. */
let lastFiles: StoreFiles | undefined;
/** The id at which the table turned out to be damaged. The store is usable once that id can be inserted. */
let damagedAt: bigint | undefined;
/** Found beside a file that was overwritten. While this log is there, the file is not opened. */
let foreignLog: ForeignLogError | undefined;

/** Empties a long log. Otherwise the next creation would wait for this. */
const quiet = setTimeout(() => {
  if (store === undefined || store.files.logSize <= LOG_LIMIT) return;
  try {
    checkOwnFile(store);
    emptyLog(store.database);
    checkFiles(store);
  } catch {
    discardStore();
  }
  quiet.refresh();
}, QUIET).unref();

reply(() => {
  if (identity === undefined) makeDirectory(dirname(path));
  store = open();
  return store.identity;
});

parentPort?.on('message', (request: SqliteRequest) => {
  if (request === 'close') {
    closeStore();
    parentPort?.close();
    return;
  }
  reply(() => {
    store ??= open();
    if (typeof request !== 'string') {
      return 'from' in request ? readPlants(store, request) : commit(store, request);
    }
    checkFiles(store);
    // A creation behind the probe would have to wait twice for the same lock.
    withoutWaiting(store.database, (database) => {
      assertWritable(database, damagedAt);
    });
    damagedAt = undefined;
    return undefined;
  });
  quiet.refresh();
});

function open(): Store {
  const { log, logSize } = readFiles(path, logPath(path));
  if (foreignLog && logSize > 0 && log === foreignLog.log) throw foreignLog;
  const former = identity === undefined ? undefined : { identity, files: lastFiles, damagedAt };
  const opened = openDatabase(path, former, (line) => {
    parentPort?.postMessage({ result: 'upgrading', line } satisfies SqliteReply);
  });
  identity = opened.identity;
  damagedAt = undefined;
  return opened;
}

function reply(perform: () => unknown): void {
  let message: SqliteReply;
  try {
    message = { result: 'done', value: perform() };
  } catch (error) {
    if (error instanceof ForeignLogError) foreignLog = error;
    // On a full disk the commit record itself could not be written. Any other failed COMMIT may have
    // written it: after a failed sync that is unknown.
    const phase = store?.phase ?? 'before';
    const isFull = resultCodeOf(error) === SQLITE_FULL;
    const isRefused = phase === 'before' || (phase === 'during' && isFull);
    // Nothing is wrong with the store where another process holds a lock.
    if (phase !== 'before' || !isBusy(error) || !tryRollback()) discardStore();
    message = { result: isRefused ? 'refused' : 'unknown', reason: describeError(error, path) };
  }
  parentPort?.postMessage(message);
}

function commit(current: Store, { ids, names, tags, keyDigests }: SqliteBatch): Insertion[] {
  const { database } = current;
  let lastId: bigint | undefined;
  try {
    checkFiles(current);
    // Pages in memory would hide that the file was overwritten.
    database.exec('PRAGMA shrink_memory; BEGIN IMMEDIATE');
    assertSameStore(database, current.identity, current.files);
    const insertions = names.map((name, at) => {
      const id = (lastId = ids[at] ?? 0n);
      return insertPlant(current, { id, name, tag: tags[at], keyDigest: keyDigests[at] });
    });
    current.phase = 'during';
    database.exec('COMMIT');
    current.phase = 'after';
    checkFiles(current);
    current.phase = 'before';
    return insertions;
  } catch (error) {
    if (resultCodeOf(error) === SQLITE_CORRUPT) damagedAt = lastId ?? damagedAt;
    throw error;
  }
}

function tryRollback(): boolean {
  try {
    if (store?.database.isTransaction) store.database.exec('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}

/** Closing moves the log into the database file, if that is still the store. */
function closeStore(): void {
  try {
    if (store) {
      checkOwnFile(store);
      store.logKeeper.close();
    }
  } catch {
    // What was committed is in the log, which stays.
  }
  discardStore();
}

/** Leaves file and log as they are: the file may be another one. */
function discardStore(): void {
  lastFiles = store?.files ?? lastFiles;
  if (store) closeAndKeepLog(store.database, store.logKeeper);
  store = undefined;
}
