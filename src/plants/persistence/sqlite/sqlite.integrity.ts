import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DAMAGE_ADVICE, isBusy, resultCodeOf, SQLITE_ERROR, SQLITE_NOTADB } from './sqlite.errors';
import { readSchemaVersion, SCHEMA_VERSION } from './sqlite.schema';

export interface StoreFiles {
  /** Device and inode number, as for the log; undefined when the file does not exist. */
  readonly database: string | undefined;
  readonly databaseSize: number;
  readonly log: string | undefined;
  readonly logSize: number;
}

/** The write-ahead log of a database. SQLite puts it beside the file that symbolic links lead to. */
export function logPath(path: string): string {
  return `${existsSync(path) ? realpathSync(path) : path}-wal`;
}

export function readFiles(path: string, log: string): StoreFiles {
  const database = statSync(path, { throwIfNoEntry: false });
  const logFile = statSync(log, { throwIfNoEntry: false });
  return {
    database: idOf(database),
    databaseSize: database?.size ?? 0,
    log: idOf(logFile),
    logSize: logFile?.size ?? 0,
  };
}

function idOf(stats: Stats | undefined): string | undefined {
  return stats && `${stats.dev}:${stats.ino}`;
}

/**
 * SQLite deletes the log beside an empty file, and applies the log beside another database to that
 * one. Either would destroy plants, so such files are not opened at all.
 *
 * @param isFirst whether a missing file may be created
 * @param before the files of the store when it was last in order
 */
export function assertOpenable(
  files: StoreFiles,
  log: string,
  isFirst: boolean,
  before: StoreFiles | undefined,
): void {
  if (files.databaseSize === 0) {
    const what = files.database === undefined ? 'missing' : 'empty';
    if (!isFirst) {
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
  if (files.logSize > 0 && files.log === before?.log && files.database !== before?.database) {
    throw new Error(
      `the file was replaced, but ${log} still belongs to the previous file: restore the previous file, or move the log away`,
    );
  }
}

/**
 * SQLite keeps writing to files that were deleted, replaced or emptied, and those plants would be lost.
 * Other processes may make the database file shorter by VACUUM, and empty the log by a checkpoint.
 */
export function assertIntact(database: DatabaseSync, before: StoreFiles, now: StoreFiles): void {
  if (now.database !== before.database || now.log !== before.log) {
    throw new Error('the database file was moved, replaced or deleted');
  }
  if (now.databaseSize >= before.databaseSize) return;
  const sql = 'SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size';
  if (now.databaseSize < Number(database.prepare(sql).get()?.size)) {
    throw new Error(`the database file was truncated: ${DAMAGE_ADVICE}`);
  }
}

export function readIdentity(database: DatabaseSync): string {
  return String(database.prepare('SELECT identity FROM plants_store').get()?.identity);
}

/** @throws Error when the database is not the store that was in use before */
export function assertSameStore(database: DatabaseSync, identity: string): void {
  let difference = 'its identity differs';
  try {
    if (readIdentity(database) === identity) return;
  } catch (error) {
    const code = resultCodeOf(error);
    if (code !== SQLITE_ERROR && code !== SQLITE_NOTADB) throw error;
    difference = (error as Error).message;
  }
  throw new Error(
    `this is not the store that was in use before (${difference}): restore that store, or restart the service to use this one`,
  );
}

/**
 * Takes a plant into the table and out again, then commits a write that changes nothing.
 *
 * @param id of that plant: where the table turned out to be damaged, if it did
 */
export function assertWritable(database: DatabaseSync, id = 0n): void {
  database.exec('BEGIN IMMEDIATE');
  const version = readSchemaVersion(database);
  if (version < SCHEMA_VERSION) {
    throw new Error(
      `the database has schema version ${version}: restart the service to migrate it`,
    );
  }
  const insert = database.prepare(
    "INSERT INTO plants (id, name, idempotency_key) VALUES (?, '', NULL) ON CONFLICT DO NOTHING",
  );
  database.exec('SAVEPOINT probe');
  insert.run(id);
  database.exec('ROLLBACK TO probe');
  // Written even if unchanged: this fails when the store accepts no writes.
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
}

/** Does something that fails at once when it needs a lock that another connection holds. */
export function withoutWaiting<Result>(
  database: DatabaseSync,
  perform: (database: DatabaseSync) => Result,
): Result {
  const { timeout } = database.prepare('PRAGMA busy_timeout').get() ?? {};
  database.exec('PRAGMA busy_timeout = 0');
  try {
    return perform(database);
  } finally {
    database.exec(`PRAGMA busy_timeout = ${Number(timeout)}`);
  }
}

/**
 * Whether any connection has a database file open. One to a file with a write-ahead log holds a shared
 * lock as long as it lives, so that no other gets exclusive use.
 *
 * @throws Error when the file is not a database
 */
export function isInUse(file: string): boolean {
  const database = new DatabaseSync(file);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('BEGIN EXCLUSIVE; ROLLBACK');
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    database.close();
  }
}

/**
 * Creates a directory and its parents, durably. Not by the option `recursive` of `mkdirSync`: it tries
 * forever where a directory exists and none can be made in it, as below `/proc`.
 */
export function makeDirectory(directory: string): void {
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

export function syncDirectory(directory: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
