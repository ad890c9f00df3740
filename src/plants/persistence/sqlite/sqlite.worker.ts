/** The thread that owns the SQLite connection, because a sync blocks: requests in, replies out, in order. */
import { hash } from 'node:crypto';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { Plant } from '../../plant';
import type { Insertion } from '../../plants.repository';
import { type KeyedPlant, repetitionOutcome } from '../plant-batches';
import { describeError, isBusy, resultCodeOf, SQLITE_CORRUPT, SQLITE_FULL } from './sqlite.errors';
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
  withoutWaiting,
} from './sqlite.integrity';
import { emptyLog, makeLogDurable } from './sqlite.recovery';
import { migrate } from './sqlite.schema';
import type {
  SqliteBatch,
  SqliteQuery,
  SqliteReply,
  SqliteRequest,
  SqliteWorkerData,
} from './sqlite.thread';

/** Milliseconds to wait for another process's lock, before a batch is refused. */
const BUSY_TIMEOUT = 1000;
/** The same at the start, when others may create the file too. */
const OPEN_TIMEOUT = 5000;

/** Bytes to which SQLite shortens a log that it begins anew. The log grows beside a long reader. */
const LOG_LIMIT = 2 ** 25;
/** Milliseconds without a request before a log above this limit is emptied, and between two attempts. */
const QUIET = 1000;

interface Store {
  readonly database: DatabaseSync;
  readonly insert: StatementSync;
  readonly selectKeyed: StatementSync;
  readonly select: StatementSync;
  readonly log: string;
  files: StoreFiles;
  /** How far the commit of the present batch is. */
  phase: 'before' | 'during' | 'after';
}

interface Row {
  readonly id: bigint;
  readonly name: string;
  readonly tag: string | null;
}

const data = workerData as SqliteWorkerData;
const { path } = data;
let { identity } = data;

/** Undefined after a failure. The next request opens it again. */
let store: Store | undefined;
/** The files of the store when it was last in order. */
let lastFiles: StoreFiles | undefined;
/** The id at which the table turned out to be damaged. The store is usable once that id can be inserted. */
let damagedAt: bigint | undefined;

/** Empties a long log. Otherwise the next creation would wait for this. */
const quiet = setTimeout(() => {
  if (store === undefined || store.files.logSize <= LOG_LIMIT) return;
  try {
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
  return identity;
});

parentPort?.on('message', (request: SqliteRequest) => {
  if (request === 'close') {
    discardStore();
    parentPort?.close();
    return;
  }
  reply(() => {
    store ??= open();
    if (typeof request !== 'string') {
      return 'from' in request ? read(store, request) : commit(store, request);
    }
    checkFiles(store);
    // A creation behind the probe would have to wait twice for the same lock.
    withoutWaiting(store.database, checkWritable);
    return undefined;
  });
  quiet.refresh();
});

function reply(perform: () => unknown): void {
  let message: SqliteReply;
  try {
    message = { result: 'done', value: perform() };
  } catch (error) {
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

function commit(current: Store, { ids, names, tags, keys }: SqliteBatch): Insertion[] {
  const { database } = current;
  let lastId: bigint | undefined;
  try {
    checkFiles(current);
    // Pages in memory would hide that the file was overwritten.
    database.exec('PRAGMA shrink_memory; BEGIN IMMEDIATE');
    if (identity !== undefined) assertSameStore(database, identity);
    const insertions = names.map((name, at) => {
      const id = (lastId = ids[at] ?? 0n);
      return insertPlant(current, { id, name, tag: tags[at], key: keys[at] });
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

function insertPlant({ insert, selectKeyed }: Store, plant: KeyedPlant): Insertion {
  const { id, name, tag = null, key } = plant;
  const digest = key === undefined ? null : hash('sha256', key, 'buffer');
  if (Number(insert.run(id, name, tag, digest).changes) === 1) return 'created';
  const row = digest && (selectKeyed.get(id, digest) as unknown as Row | undefined);
  return repetitionOutcome(row ? { ...toPlant(row), key } : undefined, plant);
}

function read({ select }: Store, { from, to, limit, textLimit }: SqliteQuery): Plant[] {
  const plants: Plant[] = [];
  let text = 0;
  for (const row of select.iterate(from, to, limit)) {
    const plant = toPlant(row as unknown as Row);
    plants.push(plant);
    text += plant.name.length + (plant.tag?.length ?? 0);
    if (text > textLimit) break;
  }
  return plants;
}

function toPlant({ id, name, tag }: Row): Plant {
  return tag === null ? { id, name } : { id, name, tag };
}

/** @throws Error when the database cannot be used, or is not the store that was in use before */
function open(): Store {
  const isFirst = identity === undefined;
  const log = logPath(path);
  assertOpenable(readFiles(path, log), log, isFirst, lastFiles);
  const location = pathToFileURL(path);
  location.searchParams.set('mode', isFirst ? 'rwc' : 'rw');
  const database = new DatabaseSync(location, {
    timeout: isFirst ? OPEN_TIMEOUT : BUSY_TIMEOUT,
    readBigInts: true,
  });
  try {
    if (identity !== undefined) assertSameStore(database, identity);
    const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {};
    if (mode !== 'wal') throw new Error('the file system does not support a write-ahead log');
    // FULL syncs the log at every commit. fullfsync asks macOS for a sync that reaches the disk.
    database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON');
    database.exec(`PRAGMA checkpoint_fullfsync = ON; PRAGMA journal_size_limit = ${LOG_LIMIT}`);
    if (isFirst) {
      migrate(database, (line) => parentPort?.postMessage({ result: 'upgrading', line }));
    }
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
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT}`);
    const files = readFiles(path, log);
    return { database, insert, selectKeyed, select, log, files, phase: 'before' };
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

function tryRollback(): boolean {
  try {
    if (store?.database.isTransaction) store.database.exec('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}

function discardStore(): void {
  lastFiles = store?.files ?? lastFiles;
  try {
    store?.database.close();
  } catch {
    // A broken connection may fail to close too.
  }
  store = undefined;
}
