import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { Plant } from '../../plant.js';
import type {
  SqliteBatch,
  SqlitePlants,
  SqliteQuery,
  SqliteReply,
  SqliteRequest,
  SqliteWorkerData,
} from './sqlite.protocol.js';

/**
 * The thread that owns the SQLite connection: batches in, replies out, in order. It has its own
 * thread because a sync blocks, and it imports nothing of the package so that it starts fast.
 */

/** SQLite's primary result codes, https://sqlite.org/rescode.html. */
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;

const { path, migrations, busyTimeout, create } = workerData as SqliteWorkerData;

interface Store {
  readonly database: DatabaseSync;
  readonly insert: StatementSync;
  readonly select: StatementSync;
  /** The files as they were opened, to notice when they are no longer the ones at their paths. */
  readonly files: string;
}

/** Undefined while the store cannot be trusted: it is opened anew for the next batch. */
let store: Store | undefined;

try {
  if (create) makeDirectory(dirname(path));
  store = open(create);
  reply({ result: 'committed', kept: new Uint8Array(0) });
} catch (error) {
  reply({ result: 'refused', reason: String(error) });
}

parentPort?.on('message', (request: SqliteRequest) => {
  if (request === 'close') {
    abandon();
    parentPort?.close();
  } else {
    reply(answer(request));
  }
});

function answer(request: SqliteBatch | SqliteQuery | 'probe'): SqliteReply | SqlitePlants {
  if (request === 'probe') return probe();
  return 'ids' in request ? commit(request) : read(request);
}

function reply(message: SqliteReply | SqlitePlants): void {
  parentPort?.postMessage(message);
}

function commit({ ids, names, tags }: SqliteBatch): SqliteReply {
  const kept = new Uint8Array(ids.length);
  let phase: 'before' | 'during' | 'after' = 'before';
  try {
    store ??= open(false);
    const { database, insert } = store;
    assertSameFiles(store);
    database.exec('BEGIN IMMEDIATE');
    ids.forEach((id, at) => {
      kept[at] = Number(insert.run(id, names[at] ?? null, tags[at] ?? null).changes);
    });
    phase = 'during';
    database.exec('COMMIT');
    phase = 'after';
    assertSameFiles(store);
    return { result: 'committed', kept };
  } catch (error) {
    const code = primaryCode(error);
    // A full disk fails the write of the commit record itself, so that none is there to be found
    // later. Any other failed COMMIT may have written it: a failed sync says no more than that.
    const refused = phase === 'before' || (phase === 'during' && code === SQLITE_FULL);
    const merelyLocked = phase === 'before' && code === SQLITE_BUSY;
    if (!merelyLocked || !rolledBack()) abandon();
    return { result: refused ? 'refused' : 'unknown', reason: String(error) };
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
    abandon();
    return { reason: String(error) };
  }
}

/** Whether the store can be written to; one that cannot be trusted is opened anew. */
function probe(): SqliteReply {
  try {
    if (store === undefined) {
      store = open(false);
    } else {
      assertSameFiles(store);
      migrate(store.database);
    }
    return { result: 'committed', kept: new Uint8Array(0) };
  } catch (error) {
    if (primaryCode(error) !== SQLITE_BUSY || !rolledBack()) abandon();
    return { result: 'refused', reason: String(error) };
  }
}

/**
 * Opens the database and makes all that it holds durable.
 *
 * After a failed sync the log may hold frames that never reach the disk although every later sync
 * succeeds; a checkpoint writes all of it to the database file and starts the log anew.
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
    // Without readBigInts an id beyond 2^53 is inserted, and then run() throws for reporting it.
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

/** Brings the schema to its newest version, in one transaction that excludes other processes. */
function migrate(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
  if (version > migrations.length) {
    throw new Error(
      `the database has schema version ${version}; this program knows ${migrations.length}`,
    );
  }
  for (const migration of migrations.slice(version)) database.exec(migration);
  // Written although it may be the same: a store that takes no writes shows it here.
  database.exec(`PRAGMA user_version = ${migrations.length}`);
  database.exec('COMMIT');
}

/** Creates the directory, and syncs the one that holds it: a new entry is lost without. */
function makeDirectory(directory: string): void {
  const first = mkdirSync(directory, { recursive: true });
  if (first === undefined || process.platform === 'win32') return;
  const descriptor = openSync(dirname(first), 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** SQLite goes on writing to a file that was deleted or replaced, and the plants go with it. */
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

function rolledBack(): boolean {
  try {
    if (store?.database.isTransaction) store.database.exec('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}

/** Closes the database, if it can be. */
function abandon(): void {
  try {
    store?.database.close();
  } catch {
    // A connection that does not work may refuse even this, and is given up all the same.
  }
  store = undefined;
}

/** The low byte of SQLite's extended result code, or undefined for an error that is not SQLite's. */
function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: number }).errcode;
  return code === undefined ? undefined : code & 0xff;
}
