import { hash } from 'node:crypto';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { Plant } from '../../plant';
import type { KeyedPlant } from '../plant-batches';
import {
  describeError,
  describeOpenError,
  isBusy,
  resultCodeOf,
  SQLITE_CORRUPT,
  SQLITE_FULL,
} from './sqlite.errors';
import {
  assertIntact,
  assertOpenable,
  assertSameStore,
  assertWritable,
  logPath,
  makeDirectory,
  readFiles,
  readIdentity,
  type StoreFiles,
} from './sqlite.integrity';
import type {
  SqliteBatch,
  SqliteCommitReply,
  SqlitePlants,
  SqliteQuery,
  SqliteRequest,
  SqliteStartReply,
  SqliteStatusReply,
  SqliteWorkerData,
} from './sqlite.protocol';
import { makeLogDurable } from './sqlite.recovery';
import { migrate } from './sqlite.schema';

/**
 * The worker thread that owns the SQLite connection: requests in, replies out, in order. It is a
 * thread because a sync blocks.
 */

/** Milliseconds to wait for another process's lock, before a batch is refused. */
const BUSY_TIMEOUT = 1000;

interface Store {
  readonly database: DatabaseSync;
  readonly insert: StatementSync;
  readonly selectKeyed: StatementSync;
  readonly select: StatementSync;
  /** The path of the log. */
  readonly log: string;
  files: StoreFiles;
}

interface Row {
  readonly id: bigint;
  readonly name: string;
  readonly tag: string | null;
}

const { path, ...settings } = workerData as SqliteWorkerData;

/** The identity of the store in use. Undefined until it is opened for the first time. */
let { identity } = settings;

/** Undefined after a failure. The next request opens it again. */
let store: Store | undefined;

/** The files of the store when it was last in order. */
let lastFiles: StoreFiles | undefined;

/** The id at which the table turned out to be damaged. The store is usable once that id can be inserted. */
let damagedAt: bigint | undefined;

reply(start());

parentPort?.on('message', (request: SqliteRequest) => {
  if (request === 'close') {
    discardStore();
    parentPort?.close();
  } else if (request === 'probe') {
    reply(probe());
  } else {
    reply('plants' in request ? commit(request) : read(request));
  }
});

function reply(
  message: SqliteCommitReply | SqliteStartReply | SqliteStatusReply | SqlitePlants,
): void {
  parentPort?.postMessage(message);
}

function start(): SqliteStartReply {
  try {
    if (identity === undefined) makeDirectory(dirname(path));
    store = open();
    return { result: 'ok', identity: readIdentity(store.database) };
  } catch (error) {
    return { result: 'failed', reason: describeOpenError(path, error) };
  }
}

function commit({ plants }: SqliteBatch): SqliteCommitReply {
  const inserted = new Uint8Array(plants.length);
  const stored = new Map<number, KeyedPlant>();
  let phase: 'before' | 'during' | 'after' = 'before';
  let lastId: bigint | undefined;
  try {
    store ??= open();
    checkFiles(store);
    store.database.exec('BEGIN IMMEDIATE');
    for (const [at, { id, name, tag = null, key }] of plants.entries()) {
      lastId = id;
      const digest = key === undefined ? null : hash('sha256', key, 'buffer');
      inserted[at] = Number(store.insert.run(id, name, tag, digest).changes);
      if (inserted[at] === 1 || key === undefined) continue;
      const row = store.selectKeyed.get(id, digest);
      if (row) stored.set(at, { ...toPlant(row as unknown as Row), key });
    }
    phase = 'during';
    store.database.exec('COMMIT');
    phase = 'after';
    checkFiles(store);
    return { result: 'committed', inserted, stored };
  } catch (error) {
    const code = resultCodeOf(error);
    if (code === SQLITE_CORRUPT) damagedAt = lastId ?? damagedAt;
    // On a full disk the commit record itself could not be written. Any other failed COMMIT may have
    // written it: after a failed sync that is unknown.
    const isRefused = phase === 'before' || (phase === 'during' && code === SQLITE_FULL);
    if (phase === 'before') recoverFrom(error);
    else discardStore();
    return { result: isRefused ? 'refused' : 'unknown', reason: describeError(error) };
  }
}

function read({ from, to, limit, textLimit }: SqliteQuery): SqlitePlants {
  try {
    store ??= open();
    const plants: Plant[] = [];
    let text = 0;
    for (const row of store.select.iterate(from, to, limit)) {
      const plant = toPlant(row as unknown as Row);
      plants.push(plant);
      text += plant.name.length + (plant.tag?.length ?? 0);
      if (text > textLimit) break;
    }
    return plants;
  } catch (error) {
    discardStore();
    return { reason: describeError(error) };
  }
}

function toPlant({ id, name, tag }: Row): Plant {
  return tag === null ? { id, name } : { id, name, tag };
}

/** Checks whether the store can be written to. Opens it again if an earlier request failed. */
function probe(): SqliteStatusReply {
  try {
    if (store === undefined) {
      store = open();
    } else {
      checkFiles(store);
      checkWritable(store.database);
    }
    return { result: 'ok' };
  } catch (error) {
    recoverFrom(error);
    return { result: 'failed', reason: describeError(error) };
  }
}

/**
 * Opens the database and makes all that it holds durable. A missing store is created, and an old one
 * migrated, only when it is opened for the first time.
 *
 * @throws Error when it cannot be used, or is not the store that was in use before
 */
function open(): Store {
  const isFirst = identity === undefined;
  const log = logPath(path);
  assertOpenable(readFiles(path, log), log, isFirst, lastFiles);
  const location = pathToFileURL(path);
  location.searchParams.set('mode', isFirst ? 'rwc' : 'rw');
  const database = new DatabaseSync(location, { timeout: BUSY_TIMEOUT, readBigInts: true });
  try {
    if (identity !== undefined) assertSameStore(database, identity);
    const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {};
    if (mode !== 'wal') throw new Error('the file system does not support a write-ahead log');
    // FULL syncs the log at every commit. fullfsync asks macOS for a sync that reaches the disk.
    database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON');
    database.exec('PRAGMA checkpoint_fullfsync = ON');
    if (isFirst) migrate(database);
    checkWritable(database);
    makeLogDurable(database, log);
    const insert = database.prepare(
      'INSERT INTO plants (id, name, tag, idempotency_key) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    );
    const selectKeyed = database.prepare(
      'SELECT id, name, tag FROM plants WHERE id = ? AND idempotency_key = ?',
    );
    const select = database.prepare(
      'SELECT id, name, tag FROM plants WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?',
    );
    // Node before 22.18 and 24.4 does not know the option. Without it, run() inserts an id beyond 2^53
    // and then throws because it cannot return it.
    for (const each of [insert, selectKeyed, select]) each.setReadBigInts(true);
    identity = readIdentity(database);
    return { database, insert, selectKeyed, select, log, files: readFiles(path, log) };
  } catch (error) {
    database.close();
    throw error;
  }
}

function checkFiles(current: Store): void {
  const now = readFiles(path, current.log);
  assertIntact(current.database, current.files, now);
  current.files = now;
}

function checkWritable(database: DatabaseSync): void {
  assertWritable(database, damagedAt);
  damagedAt = undefined;
}

/** Another connection's lock needs no more than a rollback. After any other error the store is opened again. */
function recoverFrom(error: unknown): void {
  try {
    if (!isBusy(error)) throw error;
    if (store?.database.isTransaction) store.database.exec('ROLLBACK');
  } catch {
    discardStore();
  }
}

/** Closes the database, so that the next request opens it again. */
function discardStore(): void {
  lastFiles = store?.files ?? lastFiles;
  try {
    store?.database.close();
  } catch {
    // A broken connection may fail to close too.
  }
  store = undefined;
}
