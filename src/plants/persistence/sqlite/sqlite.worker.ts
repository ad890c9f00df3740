import { hash } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import type { Plant } from '../../plant.js';
import type {
  SqliteBatch,
  SqliteCommitReply,
  SqliteMigration,
  SqlitePlants,
  SqliteQuery,
  SqliteRequest,
  SqliteStartReply,
  SqliteStatusReply,
  SqliteWorkerData,
} from './sqlite.protocol.js';

/**
 * The worker thread that owns the SQLite connection: requests in, replies out, in order. It is a
 * thread because a sync blocks. It imports nothing of the package, so that it starts fast.
 */

/** SQLite's primary result codes, https://sqlite.org/rescode.html. */
const SQLITE_ERROR = 1;
const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

/** What became of a plant, as a reply has it. */
const TAKEN = 0;
const CREATED = 1;
const REPLAYED = 2;
const KEY_REUSED = 3;

/** Bytes of the log's header and of each frame's, https://sqlite.org/fileformat2.html#walformat. */
const LOG_HEADER = 32;
const FRAME_HEADER = 24;

/** The value in {@link Files} for a file that does not exist. */
const MISSING = 'missing';

/** Bytes of the log that are written again at a time. */
const CHUNK = 2 ** 20;

const DAMAGE_ADVICE =
  'run `plant-store check --deep` and restore a backup, as docs/data.md describes';

const { path, migrations, busyTimeout, identity: knownIdentity } = workerData as SqliteWorkerData;

/** The files of the store, as last seen. */
interface Files {
  /** Device and inode number. */
  readonly database: string;
  readonly databaseSize: number;
  readonly log: string;
  readonly logSize: number;
}

interface Store {
  readonly database: DatabaseSync;
  readonly insert: StatementSync;
  readonly insertKeyed: StatementSync;
  readonly selectKeyed: StatementSync;
  readonly select: StatementSync;
  /** The path of the log. */
  readonly log: string;
  files: Files;
}

/** See {@link digestOf}. */
const digest = Buffer.alloc(32);

/** Undefined after a failure. The next request opens it again. */
let store: Store | undefined;

/** The identity of the store in use. Undefined until it is opened for the first time. */
let identity = knownIdentity;

/** The files of the store when it was last in order. */
let lastFiles: Files | undefined;

/** The id at which the table turned out to be damaged. The store is usable once that id can be inserted. */
let damagedAt: bigint | undefined;

try {
  if (identity === undefined) makeDirectory(dirname(path));
  store = open();
  reply({ result: 'ok', identity: readIdentity(store.database) });
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

type Reply = SqliteCommitReply | SqliteStartReply | SqliteStatusReply | SqlitePlants;

function handle(request: Exclude<SqliteRequest, 'close'>): Reply {
  if (request === 'probe') return probe();
  return 'ids' in request ? commit(request) : read(request);
}

function reply(message: Reply): void {
  parentPort?.postMessage(message);
}

function commit({ ids, names, tags, keys }: SqliteBatch): SqliteCommitReply {
  const insertions = new Uint8Array(ids.length);
  let phase: 'before' | 'during' | 'after' = 'before';
  let at = -1;
  try {
    const opened = (store ??= open());
    const { database, insert } = opened;
    assertIntact(opened);
    database.exec('BEGIN IMMEDIATE');
    for (const id of ids) {
      at++;
      const name = names[at] ?? '';
      const tag = tags[at] ?? null;
      const key = keys?.[at];
      insertions[at] =
        key === undefined
          ? Number(insert.run(id, name, tag).changes)
          : insertOnce(opened, id, name, tag, digestOf(key));
    }
    phase = 'during';
    database.exec('COMMIT');
    phase = 'after';
    assertIntact(opened);
    return { result: 'committed', insertions };
  } catch (error) {
    const code = primaryCode(error);
    if (code === SQLITE_CORRUPT) damagedAt = ids[at] ?? damagedAt;
    // On a full disk the commit record itself could not be written. Any other failed COMMIT may have
    // written it: after a failed sync that is unknown.
    const isRefused = phase === 'before' || (phase === 'during' && code === SQLITE_FULL);
    const isLocked = phase === 'before' && code === SQLITE_BUSY;
    if (!isLocked || !tryRollback()) discardStore();
    return { result: isRefused ? 'refused' : 'unknown', reason: describe(error) };
  }
}

/** The SHA-256 of a key, in a buffer that the next call overwrites: a new one would cost as much again. */
function digestOf(key: string): Buffer {
  digest.write(hash('sha256', key, 'latin1'), 'latin1');
  return digest;
}

/** Inserts a plant with its key. If its id is taken, compares the stored plant and key. */
function insertOnce(
  { insertKeyed, selectKeyed }: Store,
  id: bigint,
  name: string,
  tag: string | null,
  key: Buffer,
): number {
  if (Number(insertKeyed.run(id, name, tag, key).changes) === 1) return CREATED;
  const stored = selectKeyed.get(id, key);
  if (stored === undefined) return TAKEN;
  return stored.name === name && stored.tag === tag ? REPLAYED : KEY_REUSED;
}

function read({ from, to, limit, textLimit }: SqliteQuery): SqlitePlants {
  try {
    store ??= open();
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
    return { reason: describe(error) };
  }
}

/** Checks whether the store can be written to. Opens it again if an earlier request failed. */
function probe(): SqliteStatusReply {
  try {
    if (store === undefined) {
      store = open();
    } else {
      assertIntact(store);
      tryWriting(store.database);
    }
    return { result: 'ok' };
  } catch (error) {
    if (primaryCode(error) !== SQLITE_BUSY || !tryRollback()) discardStore();
    return { result: 'failed', reason: describe(error) };
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
  const log = logPath();
  assertOpenable(log);
  const location = pathToFileURL(path);
  location.searchParams.set('mode', isFirst ? 'rwc' : 'rw');
  const database = new DatabaseSync(location, { timeout: busyTimeout, readBigInts: true });
  try {
    if (!isFirst) assertSameStore(database);
    const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {};
    if (mode !== 'wal') throw new Error('the file system does not support a write-ahead log');
    // FULL syncs the log at every commit. fullfsync asks macOS for a sync that reaches the disk.
    database.exec('PRAGMA synchronous = FULL');
    database.exec('PRAGMA fullfsync = ON');
    database.exec('PRAGMA checkpoint_fullfsync = ON');
    // Before the first write: behind a hole in the log, nothing would survive a crash.
    assertNotCut(database, log);
    if (isFirst) migrate(database);
    tryWriting(database);
    makeLogDurable(database, log);
    // Without readBigInts, run() inserts an id beyond 2^53 and then throws because it cannot return it.
    const insert = database.prepare(
      'INSERT INTO plants (id, name, tag) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    );
    const insertKeyed = database.prepare(
      'INSERT INTO plants (id, name, tag, idempotency_key) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    );
    const selectKeyed = database.prepare(
      'SELECT name, tag FROM plants WHERE id = ? AND idempotency_key = ?',
    );
    const select = database.prepare(
      'SELECT id, name, tag FROM plants WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?',
    );
    // Node before 22.18 and 24.4 does not know the option.
    for (const each of [insert, insertKeyed, selectKeyed, select]) each.setReadBigInts(true);
    identity = readIdentity(database);
    return { database, insert, insertKeyed, selectKeyed, select, log, files: look(log) };
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * SQLite deletes the log beside an empty file, and applies the log beside another database to that
 * one. Either would destroy plants, so such files are not opened at all.
 */
function assertOpenable(log: string): void {
  const files = look(log);
  const isMissing = files.database === MISSING;
  if (isMissing || files.databaseSize === 0) {
    const what = isMissing ? 'missing' : 'empty';
    if (identity !== undefined) {
      throw new Error(
        `the file is ${what}: restore the database file, or restart the service to create a new one`,
      );
    }
    if (files.logSize > 0) {
      throw new Error(
        `the file is ${what}, but its write-ahead log ${log} has content: restore the database file, or remove the log to create a new database`,
      );
    }
  }
  const isLogOfOther =
    lastFiles?.log === files.log && lastFiles.database !== files.database && files.logSize > 0;
  if (isLogOfOther) {
    throw new Error(
      `the file was replaced, but ${log} still belongs to the previous file: restore the previous file, or move the log away`,
    );
  }
}

/** @throws Error when the database is not the store that was in use before */
function assertSameStore(database: DatabaseSync): void {
  const other = (how: string): Error =>
    new Error(
      `this is not the store that was in use before (${how}): restore that store, or restart the service to use this one`,
    );
  let found: string;
  try {
    found = readIdentity(database);
  } catch (error) {
    const code = primaryCode(error);
    throw code === SQLITE_ERROR || code === SQLITE_NOTADB ? other(describe(error)) : error;
  }
  if (found !== identity) throw other('its identity differs');
}

function readIdentity(database: DatabaseSync): string {
  return String(database.prepare('SELECT identity FROM plants_store').get()?.identity);
}

/** SQLite does not say why the operating system refused a file. The operating system does. */
function describeOpenFailure(error: Error): string {
  if (![SQLITE_CANTOPEN, SQLITE_READONLY].includes(primaryCode(error) ?? 0)) return describe(error);
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
  for (const migration of migrations.slice(readVersion(database))) {
    if (!editDefinition(database, migration)) database.exec(migration.statements);
  }
  database.exec(`PRAGMA user_version = ${migrations.length}`);
  database.exec('COMMIT');
}

/**
 * Changes a table by its definition alone, https://sqlite.org/lang_altertable.html#otheralter.
 *
 * @returns whether a table had that definition
 */
function editDefinition(database: DatabaseSync, { definition }: SqliteMigration): boolean {
  if (definition === undefined) return false;
  // An older Node.js has no such method, nor the protection that it switches off.
  (database as Partial<DatabaseSync>).enableDefensive?.(false);
  database.exec('PRAGMA writable_schema = ON');
  const { changes } = database
    .prepare('UPDATE sqlite_schema SET sql = ? WHERE sql = ?')
    .run(definition.to, definition.from);
  const { schema_version: version } = database.prepare('PRAGMA schema_version').get() ?? {};
  // Connections of other processes read the schema again when its version has changed.
  database.exec(`PRAGMA schema_version = ${Number(version) + 1}`);
  database.exec('PRAGMA writable_schema = RESET');
  (database as Partial<DatabaseSync>).enableDefensive?.(true);
  return Number(changes) === 1;
}

/** @throws Error when the schema is newer than this program */
function readVersion(database: DatabaseSync): number {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
  if (version <= migrations.length) return version;
  throw new Error(
    `the database has schema version ${version}, but this program supports only up to ${migrations.length}: run a newer version of the program`,
  );
}

/** Takes a plant into the table and out again, then commits a write that changes nothing. */
function tryWriting(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  const version = readVersion(database);
  if (version < migrations.length) {
    throw new Error(
      `the database has schema version ${version}: restart the service to migrate it`,
    );
  }
  const insert = database.prepare(
    "INSERT INTO plants (id, name) VALUES (?, '') ON CONFLICT DO NOTHING",
  );
  database.exec('SAVEPOINT probe');
  insert.run(damagedAt ?? 0n);
  database.exec('ROLLBACK TO probe');
  // Written even if unchanged: this fails when the store accepts no writes.
  database.exec(`PRAGMA user_version = ${migrations.length}`);
  database.exec('COMMIT');
  damagedAt = undefined;
}

/**
 * After a failed sync the log may hold frames that never reach the disk, although every later sync
 * succeeds: the kernel takes pages that it could not write for clean. A checkpoint writes all frames to
 * the database file and empties the log. While another process reads it cannot, and the log is
 * written again in place, which makes its pages dirty, and synced.
 *
 * Frames of a failed commit are written again too. They may come back after a crash, as they might
 * have without this; their plants were answered "outcome unknown".
 */
function makeLogDurable(database: DatabaseSync, log: string): void {
  // Does not wait for readers: writers would have to wait with it.
  database.exec('PRAGMA busy_timeout = 0');
  const checkpoint = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
  database.exec(`PRAGMA busy_timeout = ${busyTimeout}`);
  if (checkpoint?.busy === 0n) return;
  // This lock keeps other processes from changing the log meanwhile.
  database.exec('BEGIN IMMEDIATE');
  rewrite(log);
  syncDirectory(dirname(log));
  database.exec('ROLLBACK');
}

/**
 * Writes the bytes of a file again, and syncs it.
 *
 * Only for the log: closing a descriptor of the database file or of its `-shm` would drop the POSIX
 * locks that SQLite has on them in this process. It locks nothing in the log.
 */
function rewrite(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    const chunk = Buffer.allocUnsafe(CHUNK);
    for (let at = 0, length; (length = readSync(descriptor, chunk, 0, CHUNK, at)) > 0;) {
      at += writeSync(descriptor, chunk, 0, length, at);
    }
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
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
  syncDirectory(parent);
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function syncDirectory(directory: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * SQLite keeps writing to files that were deleted, replaced or cut, and those plants would be lost.
 * Costs two calls of the operating system, unless a file has become shorter.
 */
function assertIntact(current: Store): void {
  const { database, log, files: before } = current;
  const files = look(log);
  if (files.database !== before.database || files.log !== before.log) {
    throw new Error('the database file was moved, replaced or deleted');
  }
  if (files.databaseSize < before.databaseSize || files.logSize < before.logSize) {
    assertNotCut(database, log);
  }
  current.files = files;
}

/**
 * Both files may become shorter: a checkpoint by another process may empty the log, and VACUUM
 * shrinks the database. But the log has all frames that its index knows. The database has all pages
 * when no frame is left to copy there, and its first one always.
 *
 * @throws Error when a file lacks something
 */
function assertNotCut(database: DatabaseSync, log: string): void {
  const pageSize = readNumber(database, 'page_size');
  const pages = readNumber(database, 'page_count');
  const index = readLogIndex(database);
  const { databaseSize, logSize } = look(log);
  const size = index.frames === 0 ? 0 : LOG_HEADER + index.frames * (FRAME_HEADER + pageSize);
  // The log was emptied meanwhile if it has fewer frames now.
  if (logSize < size && readLogIndex(database).frames >= index.frames) {
    throw new Error(`the log ${log} was truncated, and plants were lost: ${DAMAGE_ADVICE}`);
  }
  const leastPages = index.frames === index.copied ? pages : 1;
  if (databaseSize < leastPages * pageSize) {
    throw new Error(`the database file was truncated: ${DAMAGE_ADVICE}`);
  }
}

/** How many frames the log has, and how many of them a checkpoint has copied to the database file. */
function readLogIndex(database: DatabaseSync): { frames: number; copied: number } {
  // SQLite before 3.51 does not know NOOP, and copies what it can.
  const row = database.prepare('PRAGMA wal_checkpoint(NOOP)').get();
  return { frames: Number(row?.log), copied: Number(row?.checkpointed) };
}

function look(log: string): Files {
  const database = statSync(path, { throwIfNoEntry: false });
  const logFile = statSync(log, { throwIfNoEntry: false });
  return {
    database: idOf(database),
    databaseSize: database?.size ?? 0,
    log: idOf(logFile),
    logSize: logFile?.size ?? 0,
  };
}

function idOf(stats: Stats | undefined): string {
  return stats ? `${stats.dev}:${stats.ino}` : MISSING;
}

/** SQLite puts the log beside the file that symbolic links lead to. */
function logPath(): string {
  return `${existsSync(path) ? realpathSync(path) : path}-wal`;
}

function readNumber(database: DatabaseSync, pragma: string): number {
  return Number(database.prepare(`PRAGMA ${pragma}`).get()?.[pragma]);
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
  lastFiles = store?.files ?? lastFiles;
  try {
    store?.database.close();
  } catch {
    // A broken connection may fail to close too.
  }
  store = undefined;
}

/** An error in one line, with advice where there is some. */
function describe(error: unknown): string {
  const { message } = error as Error;
  return primaryCode(error) === SQLITE_CORRUPT ? `${message}: ${DAMAGE_ADVICE}` : message;
}

/** The low byte of SQLite's extended result code. Undefined if the error is not SQLite's. */
function primaryCode(error: unknown): number | undefined {
  const code = (error as { errcode?: number }).errcode;
  return code === undefined ? undefined : code & 0xff;
}
