import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { syncDirectory } from './sqlite.files';
import { withoutWaiting } from './sqlite.integrity';

/**
 * What is done after a failure. It depends on behaviour that is not promised:
 *
 * - Linux takes pages that it could not write for clean, and later syncs pass them by. Writing the same
 *   bytes again makes the pages dirty.
 * - SQLite syncs whatever a checkpoint copies, and empties the log by `wal_checkpoint(TRUNCATE)` only
 *   when all of it is copied and nobody reads.
 * - A connection that has begun to write keeps others from adding to the log and from emptying it.
 * - SQLite sets no POSIX lock on the log, so closing a descriptor of it drops none. Closing one of the
 *   database file or of its `-shm` would drop those of the whole process.
 * - The last connection that closes writes the log to the database file and removes the log, but not one
 *   that can only read. Every connection to a file with a log counts, once it has read.
 *
 * Tried with SQLite 3.51.3 and 3.53.4 (Node.js 22.22.3, 24.15 and 26.10) on Linux 6.18.
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

/** Opens a connection that keeps another one from writing the log to the database file when it closes. */
export function openLogKeeper(path: string): DatabaseSync {
  const keeper = new DatabaseSync(pathToFileURL(path), { readOnly: true });
  keeper.prepare('SELECT name FROM sqlite_schema').get();
  return keeper;
}

/** Closes a connection and its keeper, and leaves database file and log as they are. */
export function closeAndKeepLog(database: DatabaseSync, keeper: DatabaseSync): void {
  for (const each of [database, keeper]) {
    try {
      each.close();
    } catch {
      // A broken connection may fail to close. One that is in order has closed its keeper before.
    }
  }
}
