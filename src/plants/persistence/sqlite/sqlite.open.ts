import { resolve } from 'node:path';
import { StoreOpenError } from '../store-open.error';
import { SqliteThread } from './sqlite.thread';

/**
 * Opens a database file in a thread of its own. Creates it and its directory when missing, and brings
 * its schema up to date.
 *
 * @param path of the file, relative to the working directory
 * @param lockTimeout milliseconds to wait for another process's lock, if not a second
 * @throws StoreOpenError when the file cannot be used
 */
export async function openSqlite(path: string, lockTimeout?: number): Promise<SqliteThread> {
  const fault = describeUnusablePath(path);
  if (fault) throw new StoreOpenError(`The database file ${path} cannot be used`, `it ${fault}`);
  const absolute = resolve(path);
  try {
    return await SqliteThread.start({ path: absolute, identity: undefined, lockTimeout });
  } catch (cause) {
    throw new StoreOpenError(`The database file ${absolute} cannot be used`, cause);
  }
}

/**
 * Describes why a path cannot name the file of a store, although SQLite would accept it.
 *
 * @returns undefined when it can
 */
export function describeUnusablePath(path: string): string | undefined {
  if (path === '') return 'must name a file, such as data/plants.db';
  if (path.startsWith(':memory:') || /^file:.*[?&]mode=memory/s.test(path)) {
    return 'must name a file: a database in memory loses all plants when the service stops';
  }
  if (path.startsWith('file:')) return 'must name a file by its path, not by a URI';
  return undefined;
}
