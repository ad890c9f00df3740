import { execFile } from 'node:child_process';
import {
  closeSync,
  existsSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { OperatorError, isBusy, readSchemaVersion } from '../plants/program';

/**
 * Copies a database to a file that is missing or empty: all that was committed before, while others
 * read and write. The copy has no free pages. It is not synced.
 *
 * @throws OperatorError when that fails
 */
export async function copySqlite(from: string, to: string, signal: AbortSignal): Promise<void> {
  await runTask(['copy', from, to], `${from} cannot be copied`, signal).finally(() => {
    rmSync(`${to}-journal`, { force: true });
  });
}

/**
 * Checks that a file is a database of plants, and reads all of it.
 *
 * @param name of the file in messages
 * @throws OperatorError saying what is wrong
 */
export async function checkSqlite(file: string, signal: AbortSignal, name = file): Promise<void> {
  try {
    if (readVersion(file) === 0) throw new Error('it has no table plants');
  } catch (cause) {
    throw new OperatorError(`${name} is not a store: ${(cause as Error).message}.`, { cause });
  }
  await runTask(['check', file], `${name} is damaged`, signal);
}

/**
 * Reads the version of the schema; 0 for a file that no store was made of yet.
 *
 * @throws Error when the file is not a store, or newer than this program
 */
export function readVersion(file: string): number {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    const version = readSchemaVersion(database);
    if (version > 0) database.prepare('SELECT id, name, tag FROM plants');
    return version;
  } finally {
    database.close();
  }
}

/**
 * Puts a database file in the place of another one, in one step.
 *
 * @param draft the new file, synced, in the same folder
 * @param former the new name of the replaced file
 * @returns whether a file was replaced
 * @throws OperatorError when another connection has the file open; the file is unchanged then
 */
export function replaceSqlite(draft: string, file: string, former: string): boolean {
  const log = `${file}-wal`;
  if (!existsSync(file)) {
    // SQLite would take it for the log of the new file.
    if (existsSync(log)) {
      throw new OperatorError(`${file} is missing, but its log ${log} exists: move the log away.`);
    }
    renameSync(draft, file);
    return false;
  }
  if (!isDatabase(file)) {
    // SQLite would refuse it and remove its log.
    if (existsSync(log)) renameSync(log, `${former}-wal`);
    linkSync(file, former);
    renameSync(draft, file);
    return true;
  }
  // A service keeps the file open.
  const database = new DatabaseSync(file, { timeout: 1000 });
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    // This empties the log and removes it, which needs exclusive use of the file.
    database.exec('PRAGMA journal_mode = DELETE');
    database.exec('BEGIN EXCLUSIVE');
    if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0) {
      throw new OperatorError(`${log} could not be emptied: close what uses the database.`);
    }
    linkSync(file, former);
    renameSync(draft, file);
    return true;
  } catch (error) {
    if (!isBusy(error)) throw error;
    throw new OperatorError(`${file} is in use: stop the service first.`, { cause: error });
  } finally {
    database.close();
  }
}

/** Whether a file is empty or begins as SQLite's files do, https://sqlite.org/fileformat.html. */
function isDatabase(file: string): boolean {
  const descriptor = openSync(file, 'r');
  try {
    const start = Buffer.alloc(16);
    const length = readSync(descriptor, start);
    return length === 0 || start.toString('latin1') === 'SQLite format 3\0';
  } finally {
    closeSync(descriptor);
  }
}

async function runTask(args: string[], what: string, signal: AbortSignal): Promise<void> {
  const program = join(__dirname, 'sqlite.task.js');
  try {
    const options = { killSignal: 'SIGKILL', signal } as const;
    await promisify(execFile)(process.execPath, [program, ...args], options);
  } catch (error) {
    signal.throwIfAborted();
    const { stderr = '' } = error as { stderr?: string };
    const reason = stderr === '' ? 'the process that did this was killed' : stderr;
    throw new OperatorError(`${what}: ${reason}.`);
  }
}
