import { once } from 'node:events';
import { accessSync, constants, existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { OperatorError } from '../plants/errors/operator.error';
import { describeVersion } from '../plants/persistence/migrations';
import { assertUsableFile } from '../plants/persistence/sqlite/sqlite.files';
import { findVersion } from '../plants/persistence/sqlite/sqlite.schema';

/**
 * Describes the file at a path and what the service would do with it.
 *
 * @throws Error stating why the service cannot use it
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
  const version = versionOf(file);
  return version === 0
    ? `SQLite file ${file}, in which the service will create its table`
    : `SQLite file ${file}, ${describeVersion(version)}`;
}

/**
 * Copies a database to a file that is missing or empty, while other processes may read and write. The
 * copy contains everything that was committed before, has no free pages, and is not synced.
 *
 * @throws OperatorError when that fails
 */
export async function copySqlite(from: string, to: string): Promise<void> {
  // This is one read transaction: it neither blocks writers nor is blocked by them.
  await query(`${from} cannot be copied`, from, 'VACUUM INTO ?', to);
}

/**
 * Checks that a file is a store, and reads all of it.
 *
 * @param name the file's name in messages
 * @throws OperatorError stating what is wrong
 */
export async function checkSqlite(file: string, name = file): Promise<void> {
  try {
    if (versionOf(file) === 0) throw new Error('it has no table plants');
  } catch (cause) {
    throw new OperatorError(`${name} is not a store: ${(cause as Error).message}.`, { cause });
  }
  const row = await query(`${name} is damaged`, file, 'PRAGMA integrity_check');
  if (row?.integrity_check === 'ok') return;
  throw new OperatorError(`${name} is damaged: ${String(row?.integrity_check)}.`);
}

/** Reads the schema version of a file; 0 if it is not a store yet. Throws an Error if the service could not use it. */
function versionOf(file: string): number {
  assertUsableFile(file);
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    return findVersion(database);
  } finally {
    database.close();
  }
}

/**
 * Runs a statement in a thread, so that this thread can show progress and end at a signal. Resolves to the first row.
 *
 * @throws OperatorError when that fails; the message begins with the given failure
 */
async function query(failure: string, ...workerData: [file: string, ...statement: string[]]) {
  const worker = new Worker(join(__dirname, 'sqlite.worker.js'), { workerData });
  try {
    const [row] = (await once(worker, 'message')) as [Record<string, unknown> | undefined];
    return row;
  } catch (cause) {
    throw new OperatorError(`${failure}: ${(cause as Error).message}.`, { cause });
  }
}
