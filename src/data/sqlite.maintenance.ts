import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../errors';
import { isBusy, readSchemaVersion } from '../plants/persistence/sqlite';

/**
 * Copies a database to a file that is missing or empty: all that was committed before, while others
 * read and write. The copy has no free pages. It is not synced.
 *
 * @throws OperatorError when that fails
 */
export async function copySqlite(from: string, to: string, signal: AbortSignal): Promise<void> {
  try {
    await runTask(['copy', from, to], `${from} cannot be copied`, signal);
  } catch (error) {
    rmSync(`${to}-journal`, { force: true });
    throw error;
  }
}

/**
 * Checks that a file is a database of plants, and reads all of it.
 *
 * @param name of the file in messages
 * @throws OperatorError saying what is wrong
 */
export async function checkSqlite(file: string, signal: AbortSignal, name = file): Promise<void> {
  try {
    if (!describeSqlite(file).hasPlants) throw new Error('it has no table plants');
  } catch (cause) {
    throw new OperatorError(`${name} is not a store: ${(cause as Error).message}.`, { cause });
  }
  await runTask(['check', file], `${name} is damaged`, signal);
}

export type SqliteSchema = Readonly<{ version: number; hasPlants: boolean; hasKeys: boolean }>;

/** @throws Error when the file cannot be read as a database, or is newer than this program */
export function describeSqlite(file: string): SqliteSchema {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  try {
    return readSchema(database);
  } finally {
    database.close();
  }
}

/** @throws Error when the database cannot be read, or is newer than this program */
export function readSchema(database: DatabaseSync): SqliteSchema {
  const version = readSchemaVersion(database);
  const columns = database.prepare("SELECT name FROM pragma_table_info('plants')").all();
  const hasKeys = columns.some(({ name }) => name === 'idempotency_key');
  return { version, hasPlants: columns.length > 0, hasKeys };
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
  if (!existsSync(file)) {
    // SQLite would take it for the log of the new file.
    if (existsSync(`${file}-wal`)) {
      throw new OperatorError(
        `${file} is missing, but its log ${file}-wal exists: move the log away first.`,
      );
    }
    renameSync(draft, file);
    return false;
  }
  // A command that starts has the file alone for less than a second. A service keeps it open.
  const database = new DatabaseSync(file, { timeout: 1000 });
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    // This empties the log and removes it, which needs exclusive use of the file.
    database.exec('PRAGMA journal_mode = DELETE');
    database.exec('BEGIN EXCLUSIVE');
    if ((statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) {
      throw new OperatorError(
        `The log ${file}-wal could not be emptied: close all programs that use the database.`,
      );
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

async function runTask(args: string[], what: string, signal: AbortSignal): Promise<void> {
  const program = join(__dirname, 'sqlite.task.js');
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  signal.addEventListener('abort', () => child.kill('SIGKILL'));
  let reason = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (reason += text));
  const [code] = (await once(child, 'close')) as [number | null];
  signal.throwIfAborted();
  if (code !== 0)
    throw new OperatorError(`${what}: ${reason || 'the process that did this was killed'}.`);
}
