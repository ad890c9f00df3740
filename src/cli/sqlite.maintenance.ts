import { execFile } from 'node:child_process';
import {
  accessSync,
  constants,
  createReadStream,
  existsSync,
  linkSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmdirSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { OperatorError } from '../plants/errors/operator.error';
import { describeVersion } from '../plants/persistence/migrations';
import { isBusy } from '../plants/persistence/sqlite/sqlite.errors';
import { assertUsableFile } from '../plants/persistence/sqlite/sqlite.files';
import { findVersion } from '../plants/persistence/sqlite/sqlite.schema';

/**
 * Describes the file at a path and what the service would do with it.
 *
 * @throws Error stating why the service cannot use it
 */
export function describeSqlite(file: string): string {
  if (!existsSync(file)) {
    assertWritableDirectory(dirname(file));
    return `SQLite file ${file}, which the service will create`;
  }
  accessSync(file, constants.R_OK | constants.W_OK);
  assertWritableDirectory(dirname(realpathSync(file)));
  const version = versionOf(file);
  return version === 0
    ? `SQLite file ${file}, in which the service will create its table`
    : `SQLite file ${file}, ${describeVersion(version)}`;
}

/**
 * Checks that this user can create files in a directory, or the directory itself if it does not exist. Leaves
 * nothing behind. SQLite needs this permission for its write-ahead log, too.
 *
 * @throws Error when no file can be created
 */
function assertWritableDirectory(directory: string): void {
  if (!existsSync(directory) && directory !== dirname(directory)) {
    assertWritableDirectory(dirname(directory));
    return;
  }
  try {
    rmdirSync(mkdtempSync(join(directory, '.plant-store-check-')));
  } catch (cause) {
    throw new Error(`cannot create files in ${directory}: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Copies a database to a file that is missing or empty, while other processes may read and write. The
 * copy contains everything that was committed before, has no free pages, and is not synced.
 *
 * @throws OperatorError when that fails
 */
export function copySqlite(from: string, to: string, signal: AbortSignal): Promise<void> {
  return runTask(['copy', from, to], `${from} cannot be copied`, signal);
}

/**
 * Checks that a file is a store, and reads all of it.
 *
 * @param name the file's name in messages
 * @throws OperatorError stating what is wrong
 */
export async function checkSqlite(file: string, signal: AbortSignal, name = file): Promise<void> {
  try {
    if (versionOf(file) === 0) throw new Error('it has no table plants');
  } catch (cause) {
    throw new OperatorError(`${name} is not a store: ${(cause as Error).message}.`, { cause });
  }
  await runTask(['check', file], `${name} is damaged`, signal);
}

/**
 * Reads the schema version of a file; 0 if it is not a store yet.
 *
 * @throws Error when the service could not use it
 */
function versionOf(file: string): number {
  assertUsableFile(file);
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    return findVersion(database);
  } finally {
    database.close();
  }
}

async function runTask(args: string[], failure: string, signal: AbortSignal): Promise<void> {
  const script = join(__dirname, 'sqlite.task.js');
  try {
    const options = { killSignal: 'SIGKILL', signal } as const;
    await promisify(execFile)(process.execPath, [script, ...args], options);
  } catch (error) {
    signal.throwIfAborted();
    const { stderr = '' } = error as { stderr?: string };
    const reason = stderr === '' ? 'the child process was killed' : stderr;
    throw new OperatorError(`${failure}: ${reason}.`);
  }
}

/**
 * Atomically replaces a database file with another one.
 *
 * @param draft the new file, synced, in the same directory
 * @param former the new path of the replaced file
 * @throws OperatorError when another connection has the file open; then the file is unchanged
 */
export async function replaceSqlite(draft: string, file: string, former: string): Promise<void> {
  const walPath = `${file}-wal`;
  if (existsSync(file) && !statSync(file).isFile()) {
    throw new OperatorError(`${file} is not a regular file.`);
  }
  const replace = (): void => {
    linkSync(file, former);
    renameSync(draft, file);
  };
  if (!existsSync(file)) {
    // SQLite would apply it to the new file.
    if (existsSync(walPath)) {
      throw new OperatorError(
        `${file} is missing, but its write-ahead log ${walPath} exists: move the log away.`,
      );
    }
    renameSync(draft, file);
  } else if (await isDatabase(file)) {
    runExclusively(file, walPath, replace);
  } else {
    // SQLite would reject the file and delete its WAL.
    if (existsSync(walPath)) renameSync(walPath, `${former}-wal`);
    replace();
  }
}

/** Whether a file is empty or starts with SQLite's header, https://sqlite.org/fileformat.html. */
async function isDatabase(file: string): Promise<boolean> {
  const start = await text(createReadStream(file, { end: 15 }));
  return start === '' || start === 'SQLite format 3\0';
}

/** Runs a function while no other connection has the database open and its WAL is empty. */
function runExclusively(file: string, walPath: string, perform: () => void): void {
  const database = new DatabaseSync(file, { timeout: 1000 });
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    // This empties and deletes the WAL. It fails while a service has the file open.
    database.exec('PRAGMA journal_mode = DELETE');
    database.exec('BEGIN EXCLUSIVE');
    if ((statSync(walPath, { throwIfNoEntry: false })?.size ?? 0) > 0) {
      throw new OperatorError(
        `${walPath} could not be emptied: close all programs that use the database.`,
      );
    }
    perform();
  } catch (error) {
    if (!isBusy(error)) throw error;
    throw new OperatorError(`${file} is in use: stop the service first.`, { cause: error });
  } finally {
    database.close();
  }
}
