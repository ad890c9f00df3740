import { DatabaseSync } from 'node:sqlite';

/**
 * Whether any connection has a database file open, in this process or another one. A connection to a
 * file with a write-ahead log holds a shared lock as long as it lives, so that no other one gets
 * exclusive use of the file.
 *
 * @throws Error when the file is not a database
 */
export function isInUse(file: string): boolean {
  // It does not wait: who has the file locked uses it.
  const database = new DatabaseSync(file);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec('BEGIN EXCLUSIVE; ROLLBACK');
    return false;
  } catch (error) {
    if (((error as { errcode?: number }).errcode ?? 0) % 256 === SQLITE_BUSY) return true;
    throw error;
  } finally {
    database.close();
  }
}

/** The primary result code, https://sqlite.org/rescode.html. */
const SQLITE_BUSY = 5;
