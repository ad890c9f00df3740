import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { Plant } from '../../plant.js';
import type {
  SqliteBatch,
  SqliteCommitReply,
  SqlitePlants,
  SqliteQuery,
  SqliteRequest,
  SqliteStatusReply,
  SqliteWorkerData,
} from './sqlite.protocol.js';

/**
 * The worker thread that owns the SQLite connection: requests in, replies out, in order. It is a
 * thread because a sync blocks. It imports nothing of the package, so that it starts fast.
 */

/** SQLite's primary result codes, https://sqlite.org/rescode.html. */
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;

const { path, migrations, busyTimeout, create } = workerData as SqliteWorkerData;

interface Store {
  readonly database: DatabaseSync;
  readonly insert: StatementSync;
  readonly select: StatementSync;
  /** The identities of the files at the time they were opened. */
  readonly files: string;
}

/** Undefined after a failure. The next request opens it again. */
let store: Store | undefined;

try {
  if (create) makeDirectory(dirname(path));
  store = open(create);
  reply({ result: 'ok' });
} catch (error) {
  reply({ result: 'failed', reason: describeOpenFailure(error as Error) });
}

parentPort?.on('message', (request: SqliteRequest) => {
  if (request === 'close') {
    discardStore();
    parentPort?.close();
  } else {
    reply(handle(request));
  }
});

type Reply = SqliteCommitReply | SqliteStatusReply | SqlitePlants;

function handle(request: Exclude<SqliteRequest, 'close'>): Reply {
  if (request === 'probe') return probe();
  return 'ids' in request ? commit(request) : read(request);
}

function reply(message: Reply): void {
  parentPort?.postMessage(message);
}

function commit({ ids, names, tags }: SqliteBatch): SqliteCommitReply {
  const inserted = new Uint8Array(ids.length);
  let phase: 'before' | 'during' | 'after' = 'before';
  try {
    store ??= open(false);
    const { database, insert } = store;
    assertSameFiles(store);
    database.exec('BEGIN IMMEDIATE');
    ids.forEach((id, at) => {
      inserted[at] = Number(insert.run(id, names[at] ?? null, tags[at] ?? null).changes);
    });
    phase = 'during';
    database.exec('COMMIT');
    phase = 'after';
    assertSameFiles(store);
    return { result: 'committed', inserted };
  } catch (error) {
    const code = primaryCode(error);
    // On a full disk the commit record itself could not be written. Any other failed COMMIT may have
    // written it: after a failed sync nobody knows.
    const isRefused = phase === 'before' || (phase === 'during' && code === SQLITE_FULL);
    const isLocked = phase === 'before' && code === SQLITE_BUSY;
    if (!isLocked || !tryRollback()) discardStore();
    return { result: isRefused ? 'refused' : 'unknown', reason: String(error) };
  }
}

function read({ from, to, limit, textLimit }: SqliteQuery): SqlitePlants {
  try {
    store ??= open(false);
    const plants: Plant[] = [];
    let text = 0;
    for (const row of store.select.iterate(from, to, limit)) {
      const { id, name, tag } = row as { id: bigint; name: string; tag: string | null };
      plants.push(tag === null ? { id, name } : { id, name, tag });
      text += name.length + (tag?.length ?? 0);
      if (text > textLimit) break;
    }
    return plants;
  } catch (error) {
    discardStore();
    return { reason: String(error) };
  }
}

/** Checks whether the store can be written to. Opens it again if an earlier request failed. */
function probe(): SqliteStatusReply {
  try {
    if (store === undefined) {
      store = open(false);
    } else {
      assertSameFiles(store);
      migrate(store.database);
    }
    return { result: 'ok' };
  } catch (error) {
    if (primaryCode(error) !== SQLITE_BUSY || !tryRollback()) discardStore();
    return { result: 'failed', reason: String(error) };
  }
}

/**
 * Opens the database and makes all that it holds durable.
 *
 * After a failed sync the log may hold frames that never reach the disk, although every later sync
 * succeeds. A checkpoint writes them all to the database file and empties the log.
 */
function open(createFile: boolean): Store {
  const location = pathToFileURL(path);
  location.searchParams.set('mode', createFile ? 'rwc' : 'rw');
  const database = new DatabaseSync(location, { timeout: busyTimeout, readBigInts: true });
  try {
    const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {};
    if (mode !== 'wal') throw new Error('the file system does not support a write-ahead log');
    // FULL syncs the log at every commit. fullfsync asks macOS for a sync that reaches the disk.
    database.exec('PRAGMA synchronous = FULL');
    database.exec('PRAGMA fullfsync = ON');
    database.exec('PRAGMA checkpoint_fullfsync = ON');
    migrate(database);
    const checkpoint = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
    if (checkpoint?.busy !== 0n) throw new Error('another process is reading the database');
    // Without readBigInts, run() inserts an id beyond 2^53 and then throws because it cannot return it.
    const insert = database.prepare(
      'INSERT INTO plants (id, name, tag) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    );
    const select = database.prepare(
      'SELECT id, name, tag FROM plants WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?',
    );
    return { database, insert, select, files: identities() };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** SQLite does not say why the operating system refused a file. The operating system does. */
function describeOpenFailure(error: Error): string {
  if (![SQLITE_CANTOPEN, SQLITE_READONLY].includes(primaryCode(error) ?? 0)) return error.message;
  if (isDirectory(path)) return 'it is a directory';
  try {
    accessSync(existsSync(path) ? path : dirname(path), constants.R_OK | constants.W_OK);
  } catch (cause) {
    return (cause as Error).message;
  }
  return error.message;
}

/** Brings the schema to its newest version, in one transaction that locks out other processes. */
function migrate(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
  if (version > migrations.length) {
    throw new Error(
      `the database has schema version ${version}; this program knows ${migrations.length}`,
    );
  }
  for (const migration of migrations.slice(version)) database.exec(migration);
  // Written even if unchanged: this fails when the store accepts no writes.
  database.exec(`PRAGMA user_version = ${migrations.length}`);
  database.exec('COMMIT');
}

/**
 * Creates the directory and its parents, and syncs the parent of each. Without the sync, a crash may
 * lose the new entry.
 *
 * Not by the option `recursive` of `mkdirSync`: it tries forever where a directory exists and none can
 * be made in it, as below `/proc`.
 */
function makeDirectory(directory: string): void {
  const parent = dirname(directory);
  if (parent === directory || isDirectory(directory)) return;
  makeDirectory(parent);
  try {
    mkdirSync(directory);
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isDirectory(directory)) throw error;
  }
  if (process.platform === 'win32') return;
  const descriptor = openSync(parent, 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** SQLite keeps writing to a file that was deleted or replaced, and those plants would be lost. */
function assertSameFiles({ files }: Store): void {
  if (identities() !== files) throw new Error('the database file was moved, replaced or deleted');
}

function identities(): string {
  return [path, `${path}-wal`]
    .map((file) => {
      const stats = statSync(file, { throwIfNoEntry: false });
      return stats ? `${stats.dev}:${stats.ino}` : 'missing';
    })
    .join();
}

function tryRollback(): boolean {
  try {
    if (store?.database.isTransaction) store.database.exec('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}

/** Closes the database, so that the next request opens it again. */
function discardStore(): void {
  try {
    store?.database.close();
  } catch {
    // A broken connection may fail to close too.
  }
  store = undefined;
}

/** The low byte of SQLite's extended result code. Undefined if the error is not SQLite's. */
function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: number }).errcode;
  return code === undefined ? undefined : code & 0xff;
}
