import { chmodSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { CutFileError } from './sqlite.errors';
import {
  assertOpenable,
  assertUsableFile,
  type FormerStore,
  logPath,
  readFiles,
  type StoreFiles,
} from './sqlite.files';
import { assertOwnFile, assertSameStore, assertWritable } from './sqlite.integrity';
import { makeLogDurable, openLogKeeper } from './sqlite.recovery';
import { migrate, readIdentity } from './sqlite.schema';
import { prepareStatements, type Statements } from './sqlite.statements';
import { assertSafeSqlite } from './sqlite.version';

/** Milliseconds to wait for another process's lock, before a batch is refused. */
const BUSY_TIMEOUT = 1000;
/** The same at the start, when others may create the file too. */
const OPEN_TIMEOUT = 30_000;

/** Bytes to which SQLite shortens a log that it begins anew. The log grows beside a long reader. */
export const LOG_LIMIT = 2 ** 25;

/** A store that is open. */
export interface Store extends Statements {
  readonly path: string;
  readonly identity: string;
  readonly database: DatabaseSync;
  readonly logKeeper: DatabaseSync;
  readonly log: string;
  files: StoreFiles;
  /** How far the commit of the present batch is. */
  phase: 'before' | 'during' | 'after';
  /** The plant that was inserted last. */
  lastId?: bigint;
}

/**
 * @param former the store that it must be; if undefined, a missing store is created
 * @throws Error when the database cannot be used, or is not that store
 */
export function openDatabase(path: string, former: FormerStore | undefined): Store {
  const log = logPath(path);
  const found = readFiles(path, log);
  assertOpenable(found, log, former);
  assertUsableFile(path);
  if (former) assertOwnFile(path, former.identity, found);
  const location = pathToFileURL(path);
  location.searchParams.set('mode', former ? 'rw' : 'rwc');
  const timeout = former ? BUSY_TIMEOUT : OPEN_TIMEOUT;
  const database = new DatabaseSync(location, { timeout, readBigInts: true });
  try {
    // SQLite gives the log the same permissions.
    if (found.database === undefined) chmodSync(path, 0o600);
    assertSafeSqlite(database);
    if (former) assertSameStore(database, former.identity, found);
    useDurableLog(database);
    if (!former) migrate(database);
    assertWritable(database, former?.lastId);
    makeLogDurable(database, log);
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT}`);
    return {
      ...{ path, log, database, phase: 'before' },
      ...prepareStatements(database),
      identity: readIdentity(database),
      logKeeper: openLogKeeper(path),
      files: readFiles(path, log),
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

function useDurableLog(database: DatabaseSync): void {
  const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {};
  if (mode !== 'wal') throw new Error('the file system does not support a write-ahead log');
  // FULL syncs the log at every commit. fullfsync asks macOS for a sync that reaches the disk.
  database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON');
  database.exec(`PRAGMA checkpoint_fullfsync = ON; PRAGMA journal_size_limit = ${LOG_LIMIT}`);
}

/**
 * SQLite keeps writing to files that were deleted, replaced or emptied, and those plants would be lost.
 * What others write into the file itself is not noticed here.
 * Other processes may make the database file shorter by VACUUM, and empty the log by a checkpoint.
 *
 * @throws Error when the files were moved, replaced, deleted or cut since the last look
 */
export function checkFiles(store: Store): void {
  const now = readFiles(store.path, store.log);
  if (now.database !== store.files.database || now.log !== store.files.log) {
    throw new Error('the database file was moved, replaced or deleted');
  }
  if (now.databaseSize < store.files.databaseSize) {
    const sql = 'SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size';
    if (now.databaseSize < Number(store.database.prepare(sql).get()?.size)) {
      throw new CutFileError();
    }
  }
  store.files = now;
}
