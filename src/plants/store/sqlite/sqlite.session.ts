/**
 * Depends on undocumented behavior of SQLite (tested: 3.53.1, 3.53.3, 3.53.4): it creates the WAL and its index with the
 * mode and, as root, the owner of the database file, and it writes a `user_version` even if that is unchanged.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { isBusy } from './sqlite.errors';
import { assertUsableFile, makeDirectory, protectNewFile, walPathOf } from './sqlite.files';
import { migrate, readSchemaVersion } from './sqlite.schema';
import { prepareStatements, type Statements } from './sqlite.statements';
import { assertSafeSqlite } from './sqlite.version';
import { checkpoint, closeWithoutCheckpoint, enableDurableWal, rewriteWal } from './sqlite.wal';

/** How long a batch waits for another process's lock. */
const BUSY_TIMEOUT_MS = 1000;
/** How long startup waits for other processes that are creating or writing the file. */
const OPEN_TIMEOUT_MS = 30_000;
/** How long each attempt to open the file waits. The process cannot exit while its thread waits in SQLite. */
const OPEN_ATTEMPT_MS = 250;

const INSERT_AND_UNDO = `SAVEPOINT probe;
  INSERT INTO plants (id, name, idempotency_key) VALUES (0, '', NULL) ON CONFLICT DO NOTHING;
  ROLLBACK TO probe`;

/** A session that has prepared its statements, and knows its files. */
export interface Session extends Statements {
  /** The paths of the database file and of its WAL. */
  readonly files: readonly string[];
  /** The ids that these files had when the store was opened. */
  readonly fileIds: string;
  /** The schema version before this start. */
  readonly foundVersion: number;
}

/** Opens the store at a path, or creates it. @throws Error when the database cannot be used */
export function openSession(path: string): Session {
  assertSafeSqlite();
  makeDirectory(dirname(path));
  const end = performance.now() + OPEN_TIMEOUT_MS;
  for (;;) {
    try {
      return tryToOpen(path);
    } catch (error) {
      if (!isBusy(error) || performance.now() > end) throw error;
    }
  }
}

function tryToOpen(path: string): Session {
  assertUsableFile(path);
  const isMissing = !existsSync(path);
  const database = new DatabaseSync(pathToFileURL(path), {
    timeout: OPEN_ATTEMPT_MS,
    readBigInts: true,
  });
  try {
    // Before the WAL exists, which gets the same mode and owner.
    if (isMissing) protectNewFile(path);
    enableDurableWal(database);
    const files = [path, walPathOf(path)] as const;
    // Before the first COMMIT, which would append to the WAL.
    rewriteWal(database, ...files);
    // Waits for no reader. Without it, a service that is killed often never shortens its WAL.
    database.exec('PRAGMA busy_timeout = 0');
    checkpoint(database, 'TRUNCATE');
    database.exec(`PRAGMA busy_timeout = ${OPEN_ATTEMPT_MS}`);
    database.exec('BEGIN IMMEDIATE');
    const foundVersion = migrate(database);
    database.exec('COMMIT');
    assertWritable(database);
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    return { ...prepareStatements(database), files, fileIds: readFileIds(files), foundVersion };
  } catch (error) {
    closeWithoutCheckpoint(database, path);
    throw error;
  }
}

/**
 * Does what a start does with an existing file, but stores nothing, and leaves no file behind.
 * @returns the schema version of the store
 * @throws Error when a start would fail, or would not accept plants
 */
export function tryStart(path: string): number {
  assertSafeSqlite();
  assertUsableFile(path);
  const hasWal = existsSync(walPathOf(path));
  const database = new DatabaseSync(pathToFileURL(path), { timeout: BUSY_TIMEOUT_MS });
  try {
    database.exec('BEGIN IMMEDIATE');
    const version = migrate(database);
    prepareStatements(database);
    database.exec(INSERT_AND_UNDO);
    database.exec('ROLLBACK');
    return version;
  } finally {
    // The last session that closes copies the WAL into the database file and deletes it. One that it created is empty.
    if (hasWal) closeWithoutCheckpoint(database, path);
    else database.close();
  }
}

/** Inserts a plant, rolls it back, then commits a write that changes nothing. */
export function assertWritable(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  const version = readSchemaVersion(database);
  // The version is unchanged, and written all the same. If a plant has the id 0, nothing else would reach the disk.
  database.exec(`${INSERT_AND_UNDO}; PRAGMA user_version = ${version}; COMMIT`);
}

/**
 * Checks that the files on the disk are those that are open. SQLite keeps writing to files that were moved, replaced
 * or deleted, and those plants would be lost. Changes that other programs write into the files are not detected.
 * @throws Error when the files on the disk are others
 */
export function assertSameFiles({ files, fileIds }: Session): void {
  if (readFileIds(files) === fileIds) return;
  throw new Error(
    'the database file or its write-ahead log was moved, replaced or deleted. Stop the service, put the files back or run `plant-store restore BACKUP`, and start it again',
  );
}

/** Reads what identifies files, even if they are moved: device and inode. */
function readFileIds(paths: readonly string[]): string {
  return paths.map(readFileId).join();
}

function readFileId(path: string): string {
  // As numbers, inodes above 2^53 would be rounded.
  const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stats ? `${stats.dev}:${stats.ino}` : 'missing';
}
