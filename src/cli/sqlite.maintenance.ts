import { once } from 'node:events';
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { OperatorError } from '../plants/errors/operator.error';
import type { Plant } from '../plants/plant/plant';
import { INT64_MAX, INT64_MIN } from '../plants/plant/int64';
import { describeVersion } from '../plants/store/migrations';
import { describeOpeningError, isWriteError } from '../plants/store/sqlite/sqlite.errors';
import { assertUsableFile, walPathOf } from '../plants/store/sqlite/sqlite.files';
import { tryToWriteIn } from '../plants/store/sqlite/sqlite.reasons';
import { findVersion } from '../plants/store/sqlite/sqlite.schema';
import { openSession, tryStart } from '../plants/store/sqlite/sqlite.session';
import { prepareStatements, readPlants } from '../plants/store/sqlite/sqlite.statements';

/** How long a command waits for a lock of another process. */
const BUSY_TIMEOUT_MS = 5000;

/** The number of plants that are read at once. */
const PAGE_LENGTH = 1000;

/**
 * Makes SQLite ignore the WAL, take no locks and create no files. In a directory that cannot be written, SQLite could
 * not open a store without a WAL otherwise: it cannot create one.
 */
export const IMMUTABLE = '?immutable=1';

/** The files that {@link copySqlite} reads and writes. */
export interface CopyRequest {
  /** The path of a database. */
  readonly from: string;
  /** The path of an empty file. */
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
  if (!isNew) fs.accessSync(file, fs.constants.R_OK | fs.constants.W_OK);
  try {
    if (isNew) {
      tryToCreate(directory, basename(file));
      return `SQLite file ${file}, which the service will create`;
    }
    return `SQLite file ${file}, ${describeVersion(tryStart(file))}`;
  } catch (cause) {
    const reason = describeOpeningError(cause, file);
    throw new OperatorError(`${file} cannot be used: ${reason}.`, { cause });
  }
}

/** Creates a store in a directory, and removes it. */
function tryToCreate(directory: string, name: string): void {
  const folder = fs.mkdtempSync(join(directory, '.plant-store-check-'));
  try {
    openSession(join(folder, name)).database.close();
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

/**
 * Copies a database to an empty file, and checks the copy, while other processes may read and write. The copy contains
 * everything committed before, and has no write-ahead log. A thread does this, so that the caller can handle signals.
 * @throws OperatorError when that fails
 */
export async function copySqlite(request: CopyRequest): Promise<void> {
  const thread = new Worker(require.resolve('./sqlite.copy-thread.js'), { workerData: request });
  await once(thread, 'exit').catch((cause: unknown) => {
    // An error of another thread loses its class.
    throw new OperatorError((cause as Error).message, { cause });
  });
}

/** Checks that a file is a store, and reads all of it. Throws an OperatorError that states what is wrong. */
export function checkSqlite(file: string): void {
  read(file, checkDatabase);
}

/** Whether a store is in a directory in which the service could not use it: SQLite creates files next to a store. */
export function isReadOnlyStore(file: string): boolean {
  return !isWritableDirectory(dirname(fs.realpathSync(file)));
}

/** Reads all plants of such a store in id order, page by page. Blocks the thread for each page. */
export function* readPages(file: string): Generator<readonly Plant[], void> {
  let from = INT64_MIN;
  for (;;) {
    const page = read(file, (database) => {
      assertStore(database);
      return readPlants(prepareStatements(database), { from, to: INT64_MAX, limit: PAGE_LENGTH });
    });
    yield page;
    const last = page.at(-1)?.id ?? INT64_MAX;
    if (last === INT64_MAX) return;
    from = last + 1n;
  }
}

/** Copies a database, and checks the copy. Blocks the thread. Throws an OperatorError that states what is wrong. */
export function copyInThisThread({ from, to, isBackup }: CopyRequest): void {
  const copy = (database: DatabaseSync): void => {
    // VACUUM skips what it does not find in a damaged database.
    if (isBackup) checkDatabase(database);
    // This is one read transaction: it neither blocks writers nor is blocked by them.
    try {
      database.prepare('VACUUM INTO ?').run(to);
    } catch (cause) {
      if (!isWriteError(cause)) throw cause;
      const reason = tryToWriteIn(dirname(to)) ?? (cause as Error).message;
      throw new OperatorError(`${to} cannot be written: ${reason}.`, { cause });
    }
  };
  read(from, copy, isBackup);
  checkSqlite(to);
}

function assertStore(database: DatabaseSync): void {
  if (findVersion(database) === 0) throw new Error('it has no table plants');
}

function checkDatabase(database: DatabaseSync): void {
  assertStore(database);
  const result = database.prepare('PRAGMA integrity_check').get()?.integrity_check;
  if (result !== 'ok') throw new Error(`it is damaged: ${String(result)}`);
}

/** Reads a database, and blocks the thread. Without listeners for signals, a signal still ends the process at once. */
function read<T>(file: string, work: (database: DatabaseSync) => T, isBackup = false): T {
  let database: DatabaseSync | undefined;
  try {
    if (isBackup) assertNoForeignLog(file);
    else assertUsableFile(file);
    const { isReadOnly, isImmutable } = chooseMode(file, isBackup);
    const url = pathToFileURL(file);
    if (isImmutable) url.search = IMMUTABLE;
    const { mtimeNs } = fs.statSync(file, { bigint: true });
    const options = { readOnly: isReadOnly, timeout: BUSY_TIMEOUT_MS, readBigInts: true };
    database = new DatabaseSync(url, options);
    const result = work(database);
    // Without locks, another process may write at the same time.
    if (isImmutable && fs.statSync(file, { bigint: true }).mtimeNs !== mtimeNs) {
      throw new Error('another process has changed it in the meantime: run the command again');
    }
    return result;
  } catch (cause) {
    if (cause instanceof OperatorError) throw cause;
    throw new OperatorError(`${file} cannot be used: ${(cause as Error).message}.`, { cause });
  } finally {
    database?.close();
  }
}

interface Mode {
  /** Whether SQLite opens the file without the right to write. */
  readonly isReadOnly: boolean;
  /** Whether it takes no locks and creates no files either: {@link IMMUTABLE}. */
  readonly isImmutable: boolean;
}

/** Chooses how to open a file so that reading does not change it. */
function chooseMode(file: string, isBackup: boolean): Mode {
  const hasWal = fs.existsSync(walPathOf(file));
  const isImmutable = !hasWal && !isWritableDirectory(dirname(file));
  // A session that may write removes the files that SQLite creates for it. Next to a WAL, it would also apply that.
  return { isReadOnly: isBackup || hasWal || isImmutable, isImmutable };
}

function isWritableDirectory(directory: string): boolean {
  try {
    fs.accessSync(directory, fs.constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** @throws Error when SQLite would apply a journal or a WAL to a backup to which it does not belong */
function assertNoForeignLog(file: string): void {
  const header = Buffer.alloc(19);
  const descriptor = fs.openSync(file, 'r');
  fs.readSync(descriptor, header);
  fs.closeSync(descriptor);
  // 2 means that the file may have a write-ahead log, https://sqlite.org/fileformat.html.
  const suffixes = header[18] === 2 ? ['-journal'] : ['-journal', '-wal'];
  const foreign = suffixes.map((suffix) => file + suffix).find((path) => fs.existsSync(path));
  if (foreign !== undefined) throw new Error(`${foreign} belongs to another file`);
}
