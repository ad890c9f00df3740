import { chmodSync, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { ChangedFilesError } from './sqlite.errors';
import { assertUsableFile, makeDirectory, statFiles, walPathOf } from './sqlite.files';
import { makeWalDurable, openCheckpointBlocker } from './sqlite.recovery';
import { migrate, readSchemaVersion } from './sqlite.schema';
import { prepareStatements, type Statements } from './sqlite.statements';
import { assertSafeSqlite } from './sqlite.version';

/** How long a batch waits for another process's lock. */
const BUSY_TIMEOUT_MS = 1000;
/** How long startup waits for a lock, because other processes may be creating the file. */
const OPEN_BUSY_TIMEOUT_MS = 30_000;

/** The size to which SQLite truncates the WAL when it restarts it. The WAL grows while a long read is running. */
export const WAL_LIMIT_BYTES = 2 ** 25;

/** The parts of a WAL, https://sqlite.org/fileformat2.html#the_write_ahead_log. */
const WAL_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/** A store that is open. */
export interface Store extends Statements {
  readonly path: string;
  readonly walPath: string;
  readonly database: DatabaseSync;
  readonly checkpointBlocker: DatabaseSync;
  /** The files at the last check. */
  files: ReturnType<typeof statFiles>;
}

/**
 * Opens the store at a path.
 *
 * @param databaseId the id of the file that was open before; if undefined, a missing store is created
 * @throws ChangedFilesError when the file was replaced, deleted or emptied
 * @throws Error when the database cannot be used
 */
export function openStore(path: string, databaseId: string | undefined): Store {
  const isFirst = databaseId === undefined;
  if (isFirst) makeDirectory(dirname(path));
  const walPath = walPathOf(path);
  assertUsableFile(path, databaseId);
  const isMissing = !existsSync(path);
  const location = pathToFileURL(path);
  location.searchParams.set('mode', isFirst ? 'rwc' : 'rw');
  const timeout = isFirst ? OPEN_BUSY_TIMEOUT_MS : BUSY_TIMEOUT_MS;
  const database = new DatabaseSync(location, { timeout, readBigInts: true });
  try {
    // SQLite creates the WAL with the permissions of the database file.
    if (isMissing) chmodSync(path, 0o600);
    assertSafeSqlite(database);
    enableDurableWal(database);
    if (isFirst) migrate(database);
    assertWritable(database);
    makeWalDurable(database, walPath);
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    return {
      ...{ path, walPath, database },
      ...prepareStatements(database),
      checkpointBlocker: openCheckpointBlocker(path),
      files: statFiles(path, walPath),
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

function enableDurableWal(database: DatabaseSync): void {
  const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {};
  if (mode !== 'wal') throw new Error('the file system does not support a write-ahead log');
  // FULL syncs the WAL at every commit. On macOS, only fullfsync makes a sync reach the disk.
  database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON');
  database.exec(`PRAGMA checkpoint_fullfsync = ON; PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES}`);
}

/** Inserts a plant, rolls it back, then commits a write that changes nothing. */
export function assertWritable(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  const version = readSchemaVersion(database);
  // SQLite writes the version even if it is unchanged.
  database.exec(`SAVEPOINT probe;
    INSERT INTO plants (id, name, idempotency_key) VALUES (0, '', NULL) ON CONFLICT DO NOTHING;
    ROLLBACK TO probe; PRAGMA user_version = ${version}; COMMIT`);
}

/**
 * Checks that the files on the disk are those that are open. SQLite keeps writing to files that were
 * moved, replaced, deleted or truncated, and those plants would be lost. Changes that other programs
 * write into the files are not detected.
 *
 * @throws ChangedFilesError when the files on the disk are others, or were truncated
 */
export function assertSameFiles(store: Store): void {
  const { database, wal } = store.files;
  const now = statFiles(store.path, store.walPath);
  const isSame = now.database.id === database.id && now.wal.id === wal.id;
  const hasShrunk = now.database.bytes < database.bytes || now.wal.bytes < wal.bytes;
  // Another process may change both between SQLite's count and the sizes, so only a second check is proof.
  if (!isSame || (hasShrunk && isTruncated(store) && isTruncated(store))) {
    throw new ChangedFilesError();
  }
  store.files = now;
}

/**
 * Whether a file has become smaller than the size that SQLite counts. This distinguishes a truncated WAL from
 * one that a checkpoint of another process emptied, and a truncated database from one that VACUUM shrank. A
 * database file that has not become smaller may have fewer pages than SQLite counts: the rest are in the WAL.
 */
function isTruncated({ database, path, walPath, files: before }: Store): boolean {
  // Before 3.51, SQLite does a passive checkpoint here, and counts the same.
  const frames = Number(database.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.log);
  const pageBytes = Number(database.prepare('PRAGMA page_size').get()?.page_size);
  const walBytes = frames > 0 ? WAL_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + pageBytes) : 0;
  const now = statFiles(path, walPath);
  if (now.wal.bytes < Math.min(walBytes, before.wal.bytes)) return true;
  const pages = Number(database.prepare('PRAGMA page_count').get()?.page_count);
  return now.database.bytes < Math.min(pages * pageBytes, before.database.bytes);
}
