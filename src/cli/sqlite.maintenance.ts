import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../plants/errors/operator.error';
import { describeVersion } from '../plants/store/migrations';
import { assertUsableFile } from '../plants/store/sqlite/sqlite.files';
import { findVersion } from '../plants/store/sqlite/sqlite.schema';

/**
 * Describes the file at a path and what the service would do with it.
 *
 * @throws OperatorError stating why the service cannot use it
 */
export function describeSqlite(file: string): string {
  const isNew = !existsSync(file);
  let directory = dirname(isNew ? file : realpathSync(file));
  // The service creates missing directories.
  while (!existsSync(directory)) directory = dirname(directory);
  // SQLite creates its write-ahead log in the directory.
  accessSync(directory, constants.W_OK | constants.X_OK);
  if (isNew) return `SQLite file ${file}, which the service will create`;
  accessSync(file, constants.R_OK | constants.W_OK);
  return `SQLite file ${file}, ${describeVersion(read(file, findVersion))}`;
}

/**
 * Copies a database to a file that is missing or empty, while other processes may read and write. The
 * copy contains everything that was committed before, has no free pages, and is not synced.
 *
 * @throws OperatorError when that fails
 */
export function copySqlite(from: string, to: string): void {
  // This is one read transaction: it neither blocks writers nor is blocked by them.
  read(from, (database) => database.prepare('VACUUM INTO ?').run(to));
}

/**
 * Checks that a file is a store, and reads all of it.
 *
 * @param name the file's name in messages
 * @throws OperatorError stating what is wrong
 */
export function checkSqlite(file: string, name?: string): void {
  const check = (database: DatabaseSync): void => {
    if (findVersion(database) === 0) throw new Error('it has no table plants');
    const result = database.prepare('PRAGMA integrity_check').get()?.integrity_check;
    if (result !== 'ok') throw new Error(`it is damaged: ${String(result)}`);
  };
  read(file, check, name);
}

/**
 * Reads a database, and blocks the thread. Without listeners for signals, a signal still ends the process at once.
 *
 * @param name the file's name in messages
 */
function read<T>(file: string, work: (database: DatabaseSync) => T, name = file): T {
  let database: DatabaseSync | undefined;
  try {
    assertUsableFile(file);
    database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
    return work(database);
  } catch (cause) {
    throw new OperatorError(`${name} cannot be used: ${(cause as Error).message}.`, { cause });
  } finally {
    database?.close();
  }
}
