import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { syncDirectory } from './sqlite.files';

/**
 * Recovery after a failure. It relies on undocumented behaviour:
 *
 * - After a failed sync, Linux marks the unwritten pages as clean, and later syncs skip them. Writing the
 *   same bytes again makes the pages dirty.
 * - SQLite syncs whatever a checkpoint copies, and truncates the WAL by `wal_checkpoint(TRUNCATE)` only
 *   when all of it is copied and nobody reads.
 * - A connection that has begun to write keeps others from adding to the WAL and from truncating it.
 * - SQLite sets no POSIX lock on the WAL, so closing a descriptor of it releases none. Closing one of the
 *   database file or of its `-shm` would release those of the whole process.
 * - The last connection to close checkpoints and deletes the WAL, unless it is read-only. Any connection
 *   that has read from a WAL database counts.
 *
 * Tested with SQLite 3.51.3 and 3.53.4 (Node.js 22.22.3, 24.15 and 26.10) on Linux 6.18.
 * `sqlite.recovery.spec.ts` fails when SQLite changes.
 */

const CHUNK_BYTES = 2 ** 20;

/**
 * Makes all committed data durable: by a checkpoint, or by writing the WAL again in place while another
 * process reads.
 *
 * Frames of a failed commit are written again too. They may reappear after a crash, which would be possible
 * without this too: the outcome of their plants was reported as unknown.
 */
export function makeWalDurable(database: DatabaseSync, walPath: string): void {
  if (tryTruncateWal(database)) return;
  // This lock keeps other processes from changing the WAL in the meantime.
  database.exec('BEGIN IMMEDIATE');
  rewrite(walPath);
  syncDirectory(dirname(walPath));
  database.exec('ROLLBACK');
}

/**
 * Truncates the WAL unless a reader is active. Does not wait for readers, because writers would have to
 * wait too.
 */
export function tryTruncateWal(database: DatabaseSync): boolean {
  const { timeout } = database.prepare('PRAGMA busy_timeout').get() ?? {};
  database.exec('PRAGMA busy_timeout = 0');
  try {
    return Number(database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.busy) === 0;
  } finally {
    database.exec(`PRAGMA busy_timeout = ${Number(timeout)}`);
  }
}

function rewrite(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let at = 0, length; (length = readSync(descriptor, chunk, 0, CHUNK_BYTES, at)) > 0;) {
      at += writeSync(descriptor, chunk, 0, length, at);
    }
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Opens a second connection, so that closing the first one does not checkpoint and delete the WAL. */
export function openCheckpointBlocker(path: string): DatabaseSync {
  const blocker = new DatabaseSync(pathToFileURL(path), { readOnly: true });
  blocker.prepare('SELECT name FROM sqlite_schema').get();
  return blocker;
}

/** Closes a connection and its blocker, and leaves the database file and the WAL as they are. */
export function closeWithoutCheckpoint(database: DatabaseSync, blocker: DatabaseSync): void {
  for (const each of [database, blocker]) {
    try {
      each.close();
    } catch {
      // A broken connection may fail to close. A healthy one has already closed its blocker.
    }
  }
}
