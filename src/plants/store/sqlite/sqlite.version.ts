import { DatabaseSync } from 'node:sqlite';

/**
 * Older versions can lose committed transactions when two connections write and checkpoint at the same moment: the
 * "WAL-reset" bug, https://sqlite.org/wal.html#walresetbug.
 */
const MIN_VERSION = '3.51.3';

/** Asks SQLite itself, because a distribution's Node.js uses the system's. @throws Error when it may lose plants */
export function assertSafeSqlite(database = new DatabaseSync(':memory:')): void {
  const version = String(database.prepare('SELECT sqlite_version() AS version').get()?.version);
  database.close();
  if (version.localeCompare(MIN_VERSION, 'en', { numeric: true }) >= 0) return;
  throw new Error(
    `SQLite ${version} may lose stored plants when two connections use a file (its WAL-reset bug). Use Node.js from nodejs.org: 22.22.3, 24.15 and 26.0 and newer releases have the fix. The Node.js of a distribution uses the SQLite of the system`,
  );
}
