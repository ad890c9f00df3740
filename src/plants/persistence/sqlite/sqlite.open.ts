import { resolve } from 'node:path';
import { StoreOpenError } from '../store-open.error';
import { sqliteMigrations } from './sqlite.migrations';
import { describeUnusablePath } from './sqlite.path';
import { SqliteThread } from './sqlite.thread';

/** Milliseconds that a batch waits for another process's lock before it is refused. */
const BUSY_TIMEOUT = 1000;

/**
 * Opens a database file in a thread of its own. Creates it and its directory when missing, and brings
 * its schema up to date.
 *
 * @param path of the file, relative to the working directory
 * @throws StoreOpenError when the file cannot be used
 */
export async function openSqlite(path: string): Promise<SqliteThread> {
  const fault = describeUnusablePath(path);
  if (fault) throw new StoreOpenError(`The database file ${path} cannot be used`, `it ${fault}`);
  const absolute = resolve(path);
  try {
    return await startThread(absolute);
  } catch (cause) {
    throw new StoreOpenError(`The database file ${absolute} cannot be used`, cause);
  }
}

/**
 * Starts a thread with a database file.
 *
 * @param identity of the store that it must be; undefined for any, which is created or migrated then
 * @throws Error with the reason when that fails
 */
export function startThread(path: string, identity?: string): Promise<SqliteThread> {
  return SqliteThread.start({
    path,
    identity,
    busyTimeout: BUSY_TIMEOUT,
    migrations: sqliteMigrations,
  });
}
