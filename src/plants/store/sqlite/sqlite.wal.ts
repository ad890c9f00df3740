/**
 * The write-ahead log of a session.
 *
 * This file depends on undocumented behavior of SQLite: a read-only session that closes last does not checkpoint.
 * Tested with SQLite 3.53.4. `power-failure.slow-spec.ts` fails if this behavior changes.
 */
import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { isBusy, isDiskFull } from './sqlite.errors';
import { countReadableFrames } from './sqlite.wal-frames';

/** The size to which SQLite truncates the WAL when it restarts it. The WAL grows while a long read is running. */
const WAL_LIMIT_BYTES = 2 ** 25;

/** How many pages the WAL gets before they are copied into the database file: the default of SQLite. */
const CHECKPOINT_PAGES = 1000;

const CHUNK_BYTES = 2 ** 20;

/** Turns on the WAL, and a sync of it at every commit. Turns off SQLite's own checkpoint, which hides its errors. */
export function enableDurableWal(database: DatabaseSync): void {
  const { journal_mode: mode } = database.prepare('PRAGMA journal_mode = WAL').get() ?? {};
  if (mode !== 'wal') throw new Error('the file system does not support a write-ahead log');
  // On macOS, only fullfsync makes a sync reach the disk.
  database.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA wal_autocheckpoint = 0');
  database.exec(`PRAGMA checkpoint_fullfsync = ON; PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES}`);
}

/** How long closing waits for a lock of another process. */
const CLOSE_TIMEOUT_MS = 1000;

/**
 * Writes the bytes of the WAL again, and syncs it. After a failed sync, a part of the WAL can be read but will never
 * reach the disk: Linux considers its pages clean. In a power failure, plants behind that part would be lost, and a
 * checkpoint of that part could damage the database.
 *
 * Nobody else changes the WAL meanwhile, because this takes the write lock. No reader has to finish. Only the WAL
 * may be opened like this: closing another descriptor of the database file would drop the locks of SQLite.
 * @throws Error when the WAL has a hole
 */
export function rewriteWal(database: DatabaseSync, path: string, walPath: string): void {
  database.exec('BEGIN IMMEDIATE');
  assertNoHole(path, walPath);
  const descriptor = openSync(walPath, 'r+');
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (let at = 0; ;) {
      const length = readSync(descriptor, chunk, 0, CHUNK_BYTES, at);
      if (length === 0) break;
      // After a short write, the next chunk begins with the rest.
      at += writeSync(descriptor, chunk, 0, length, at);
    }
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  database.exec('ROLLBACK');
}

/**
 * Checks that every frame of the WAL can be read that its sessions consider a part of it. After a failed sync, a process
 * that has the file open keeps such frames in its index (`-shm`), but they are lost once Linux evicts their pages. SQLite
 * would append behind the hole, and a start without that index would not find those plants. Called with the write lock.
 */
function assertNoHole(path: string, walPath: string): void {
  // A session in a transaction cannot ask for the number of frames.
  const other = new DatabaseSync(path);
  let frames: number;
  try {
    frames = countFrames(other).all;
  } finally {
    other.close();
  }
  const readable = countReadableFrames(walPath);
  if (readable >= frames) return;
  throw new Error(
    `its write-ahead log can be read only up to frame ${readable} of ${frames}, because a sync has failed. Another process still has the file open: end all other processes on the file, and start the service again`,
  );
}

/** Counts the frames of the WAL, and those that were copied into the database file. Copies none. */
function countFrames(database: DatabaseSync): { all: number; checkpointed: number } {
  const { log, checkpointed } = database.prepare('PRAGMA wal_checkpoint(NOOP)').get() ?? {};
  return { all: Number(log), checkpointed: Number(checkpointed) };
}

/** Whether the WAL has many pages that were not copied into the database file yet. Copies none. */
export function isWalLarge(database: DatabaseSync): boolean {
  const { all, checkpointed } = countFrames(database);
  return all - checkpointed >= CHECKPOINT_PAGES;
}

/**
 * Copies the WAL into the database file, as far as its readers allow.
 * @param mode `TRUNCATE` also empties the WAL, but waits for readers, as long as the busy timeout allows
 * @throws Error on an I/O error: then SQLite may consider pages copied that will never reach the disk
 */
export function checkpoint(database: DatabaseSync, mode: 'PASSIVE' | 'TRUNCATE' = 'PASSIVE'): void {
  try {
    database.exec(`PRAGMA wal_checkpoint(${mode})`);
  } catch (error) {
    // The WAL still contains everything.
    if (!isDiskFull(error) && !isBusy(error)) throw error;
  }
}

/**
 * Closes a session without the checkpoint that SQLite runs when the last session of a file closes. After an I/O
 * error, that checkpoint could delete a WAL whose content has not reached the disk. A reader that closes last prevents
 * it. If it cannot lock the database in time, another process has the database open, and closes last.
 */
export function closeWithoutCheckpoint(database: DatabaseSync, path: string): void {
  let reader: DatabaseSync | undefined;
  try {
    reader = new DatabaseSync(path, { readOnly: true, timeout: CLOSE_TIMEOUT_MS });
    reader.prepare('PRAGMA schema_version').get();
  } catch {
    // It is not a database, or cannot be read: SQLite cannot copy a WAL into it either.
  }
  database.close();
  reader?.close();
}
