import { DatabaseSync } from 'node:sqlite';
import { isBusy } from './sqlite.errors';

/**
 * Whether any connection has a database file open, in this process or another one. A connection to a
 * file with a write-ahead log holds a shared lock as long as it lives, so that no other one gets
 * exclusive use of the file.
 *
 * @throws Error when the file is not a database
 */
export function isInUse(file: string): boolean {
  // It does not wait: whoever holds a lock uses the file.
  const database = new DatabaseSync(file);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('BEGIN EXCLUSIVE; ROLLBACK');
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    database.close();
  }
}
