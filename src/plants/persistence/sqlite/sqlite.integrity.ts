import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import {
  RESTORE_ADVICE,
  resultCodeOf,
  SQLITE_CORRUPT,
  SQLITE_ERROR,
  SQLITE_NOTADB,
} from './sqlite.errors';
import type { StoreFiles } from './sqlite.files';
import { readIdentity, readSchemaVersion } from './sqlite.schema';

/** @throws Error when the database is not the store that was in use before */
export function assertSameStore(database: DatabaseSync, identity: string, files: StoreFiles): void {
  let difference = 'its identity differs';
  try {
    if (readIdentity(database) === identity) return;
  } catch (error) {
    const code = resultCodeOf(error);
    if (code !== SQLITE_ERROR && code !== SQLITE_NOTADB) throw error;
    difference = (error as Error).message;
  }
  const what = `this is not the store that was in use before (${difference})`;
  const advice =
    files.logSize > 0
      ? `its write-ahead log may belong to that store, so ${RESTORE_ADVICE}`
      : 'restore that store, or restart the service to use this one';
  throw new Error(`${what}: ${advice}`);
}

/**
 * Looks at the database file alone, which its log hides from other connections. It changes neither.
 *
 * @throws Error when the file is not the store that was in use before
 */
export function assertOwnFile(path: string, identity: string, files: StoreFiles): void {
  const location = pathToFileURL(path);
  // To SQLite: read no log, and take no lock.
  location.searchParams.set('immutable', '1');
  const database = new DatabaseSync(location, { readOnly: true });
  try {
    assertSameStore(database, identity, files);
  } catch (error) {
    // A checkpoint that a full disk has stopped leaves such a file. With its log it is sound.
    if (resultCodeOf(error) !== SQLITE_CORRUPT) throw error;
  } finally {
    database.close();
  }
}

/**
 * Takes a plant into the table and out again, then commits a write that changes nothing.
 *
 * @param id of that plant: where the table may be damaged
 */
export function assertWritable(database: DatabaseSync, id = 0n): void {
  database.exec('BEGIN IMMEDIATE');
  const version = readSchemaVersion(database);
  const insert = database.prepare(
    "INSERT INTO plants (id, name, idempotency_key) VALUES (?, '', NULL) ON CONFLICT DO NOTHING",
  );
  database.exec('SAVEPOINT probe');
  insert.run(id);
  database.exec('ROLLBACK TO probe');
  // Written even if unchanged: this fails when the store accepts no writes.
  database.exec(`PRAGMA user_version = ${version}; COMMIT`);
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
