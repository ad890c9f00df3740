import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { syncDirectory, withoutWaiting } from './sqlite.integrity';

/**
 * What is done after a failed sync. It depends on behaviour that is not promised:
 *
 * - Linux takes pages that it could not write for clean, and later syncs pass them by. Writing the same
 *   bytes again makes the pages dirty.
 * - SQLite syncs whatever a checkpoint copies, and empties the log by `wal_checkpoint(TRUNCATE)` only
 *   when all of it is copied and nobody reads.
 * - A connection that has begun to write keeps others from adding to the log and from emptying it.
 * - SQLite sets no POSIX lock on the log, so closing a descriptor of it drops none. Closing one of the
 *   database file or of its `-shm` would drop those of the whole process.
 *
 * Tried with SQLite 3.49.1, 3.53.0 and 3.53.4 (Node.js 22.16, 24.16 and 26.10) on Linux 6.18.
 * `sqlite.recovery.spec.ts` fails when SQLite changes.
 */

const CHUNK = 2 ** 20;

/**
 * Makes all that a database holds durable: by a checkpoint, or by writing the log again in place while
 * another process reads.
 *
 * Frames of a failed commit are written again too. They may come back after a crash, as they might
 * have without this; their plants were answered "outcome unknown".
 */
export function makeLogDurable(database: DatabaseSync, log: string): void {
  if (emptyLog(database)) return;
  // This lock keeps other processes from changing the log meanwhile.
  database.exec('BEGIN IMMEDIATE');
  rewrite(log);
  syncDirectory(dirname(log));
  database.exec('ROLLBACK');
}

/** Empties the log unless somebody reads. It does not wait for that: writers would have to wait too. */
export function emptyLog(database: DatabaseSync): boolean {
  const checkpoint = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)');
  return Number(withoutWaiting(database, () => checkpoint.get())?.busy) === 0;
}

function rewrite(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    const chunk = Buffer.allocUnsafe(CHUNK);
    for (let at = 0, length; (length = readSync(descriptor, chunk, 0, CHUNK, at)) > 0;) {
      at += writeSync(descriptor, chunk, 0, length, at);
    }
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
