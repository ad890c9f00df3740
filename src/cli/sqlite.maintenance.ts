import { once } from 'node:events';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { OperatorError } from '../plants/errors/operator.error';
import { describeVersion } from '../plants/store/migrations';
import { assertUsableFile, walPathOf } from '../plants/store/sqlite/sqlite.files';
import { findVersion } from '../plants/store/sqlite/sqlite.schema';
import { openSession, tryStart } from '../plants/store/sqlite/sqlite.session';

/** What the thread of {@link copySqlite} gets. */
export interface CopyRequest {
  readonly from: string;
  readonly to: string;
  /** Whether the source is a backup, which is checked too. */
  readonly isBackup: boolean;
}

/**
 * Describes the file at a path and what the service would do with it.
 * @throws OperatorError stating why the service cannot use it
 */
export function describeSqlite(file: string): string {
  const isNew = !fs.existsSync(file);
  let directory = dirname(isNew ? file : fs.realpathSync(file));
  // The service creates missing directories.
  while (!fs.existsSync(directory)) directory = dirname(directory);
  // SQLite creates its write-ahead log in the directory.
  fs.accessSync(directory, fs.constants.W_OK | fs.constants.X_OK);
  if (isNew) {
    tryToCreate(directory);
    return `SQLite file ${file}, which the service will create`;
  }
  fs.accessSync(file, fs.constants.R_OK | fs.constants.W_OK);
  try {
    return `SQLite file ${file}, ${describeVersion(tryStart(file))}`;
  } catch (cause) {
    throw new OperatorError(`${file} cannot be used: ${(cause as Error).message}.`, { cause });
  }
}

/** Creates a store in a directory, and removes it. */
function tryToCreate(directory: string): void {
  const folder = fs.mkdtempSync(join(directory, '.plant-store-check-'));
  try {
    openSession(join(folder, 'plants.db')).database.close();
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/**
 * Copies a database to an empty file, and checks the copy, while other processes may read and write. The copy contains
 * everything committed before, and has no write-ahead log. A thread does this, so that the caller can handle signals.
 * @param isBackup whether the source is a backup, which is checked too
 * @throws OperatorError when that fails
 */
export async function copySqlite(from: string, to: string, isBackup = false): Promise<void> {
  const thread = new Worker(require.resolve('./sqlite.copy-thread.js'), {
    workerData: { from, to, isBackup } satisfies CopyRequest,
  });
  await once(thread, 'exit').catch((cause: unknown) => {
    // An error of another thread loses its class.
    throw new OperatorError((cause as Error).message, { cause });
  });
}

/** Checks that a file is a store, and reads all of it. Throws an OperatorError that states what is wrong. */
export function checkSqlite(file: string): void {
  read(file, checkDatabase);
}

/** Copies a database, and checks the copy. Blocks the thread. Throws an OperatorError that states what is wrong. */
export function copyInThisThread({ from, to, isBackup }: CopyRequest): void {
  const copy = (database: DatabaseSync): void => {
    // VACUUM skips what it does not find in a damaged database.
    if (isBackup) checkDatabase(database);
    // This is one read transaction: it neither blocks writers nor is blocked by them.
    database.prepare('VACUUM INTO ?').run(to);
  };
  read(from, copy, isBackup);
  checkSqlite(to);
}

function checkDatabase(database: DatabaseSync): void {
  if (findVersion(database) === 0) throw new Error('it has no table plants');
  const result = database.prepare('PRAGMA integrity_check').get()?.integrity_check;
  if (result !== 'ok') throw new Error(`it is damaged: ${String(result)}`);
}

/** Reads a database, and blocks the thread. Without listeners for signals, a signal still ends the process at once. */
function read<T>(file: string, work: (database: DatabaseSync) => T, isBackup = false): T {
  let database: DatabaseSync | undefined;
  try {
    if (isBackup) assertNoForeignLog(file);
    else assertUsableFile(file);
    // A session that may write removes the files that SQLite creates for it. Next to a log, it would also apply that.
    const readOnly = isBackup || fs.existsSync(walPathOf(file));
    database = new DatabaseSync(file, { readOnly, timeout: 5000 });
    return work(database);
  } catch (cause) {
    throw new OperatorError(`${file} cannot be used: ${(cause as Error).message}.`, { cause });
  } finally {
    database?.close();
  }
}

/** @throws Error when SQLite would apply a log to a backup that does not belong to it */
function assertNoForeignLog(file: string): void {
  const header = Buffer.alloc(19);
  const descriptor = fs.openSync(file, 'r');
  fs.readSync(descriptor, header);
  fs.closeSync(descriptor);
  // 2 means that the file may have a write-ahead log, https://sqlite.org/fileformat.html.
  const suffixes = header[18] === 2 ? ['-journal'] : ['-journal', '-wal'];
  const log = suffixes.map((suffix) => file + suffix).find((path) => fs.existsSync(path));
  if (log !== undefined) throw new Error(`${log} belongs to another file`);
}
