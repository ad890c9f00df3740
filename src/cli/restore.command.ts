import * as fs from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { OperatorError } from '../plants/errors/operator.error';
import { isBusy, isDamage } from '../plants/store/sqlite/sqlite.errors';
import {
  assertUsableFile,
  createFormerName,
  makeDirectory,
  protectNewFile,
  syncDirectory,
  walPathOf,
} from '../plants/store/sqlite/sqlite.files';
import { rewriteWal } from '../plants/store/sqlite/sqlite.wal';
import { linkOrRename, requireFile, writeNewFile } from './new-file';
import { copySqlite, IMMUTABLE } from './sqlite.maintenance';
import { requireSqlitePath } from './configured-store';
import { UsageError } from './usage.error';

const BACKUP_ADVICE = 'Pass a file created by "plant-store backup".';

/**
 * Checks a backup, and replaces the SQLite file of the store with a copy of it. Keeps the old file under another name.
 */
export async function restore(backup: string): Promise<void> {
  const file = requireSqlitePath();
  requireFile(backup, BACKUP_ADVICE);
  const old = readStatus(file);
  if (isSameFile(old, readStatus(backup))) {
    throw new UsageError(`${backup} is the store itself. ${BACKUP_ADVICE}`);
  }
  makeDirectory(dirname(file));
  const copy = (draft: string): Promise<void> => {
    protectNewFile(draft);
    return copySqlite({ from: fs.realpathSync(backup), to: draft, isBackup: true });
  };
  const former = createFormerName(file);
  await writeNewFile(file, copy, (draft) => {
    replace(file, old, draft, former);
  });
  console.error(`Restored ${file} from ${resolve(backup)}.`);
  if (fs.existsSync(former)) console.error(`The old file is now ${former}.`);
}

/**
 * Atomically replaces a database file that no other process has open. The new file gets the owner and mode of the old.
 * @param old the status of the file when the command began
 * @throws OperatorError when the file is in use, is not a database, or has been replaced; then it is unchanged
 */
function replace(
  file: string,
  old: fs.BigIntStats | undefined,
  draft: string,
  former: string,
): void {
  let lock: DatabaseSync | undefined;
  try {
    assertUsableFile(file);
    if (old) lock = lockUnusedDatabase(file);
    if (!isSameFile(old, readStatus(file))) {
      throw new OperatorError(`Another command has created or replaced ${file} in the meantime.`);
    }
    if (old) {
      keepOwner(draft, old);
      linkOrRename(file, former);
      moveWal(file, former);
    }
    // The old file still has its name if it could get the other one by a hard link. A rename replaces it atomically.
    if (fs.existsSync(file)) fs.renameSync(draft, file);
    else linkOrRename(draft, file);
  } catch (cause) {
    if (cause instanceof OperatorError) throw cause;
    const problem = isBusy(cause)
      ? 'is in use: stop the service first'
      : `cannot be replaced: ${(cause as Error).message}. Move it and its write-ahead log (-wal) away, and run the command again`;
    throw new OperatorError(`${file} ${problem}.`, { cause });
  } finally {
    lock?.close();
  }
}

/** Moves the WAL that a damaged database still has: SQLite would apply it to the new file. */
function moveWal(file: string, former: string): void {
  const wal = walPathOf(file);
  const status = fs.statSync(wal, { throwIfNoEntry: false });
  if (!status) return;
  if (status.size > 0) fs.renameSync(wal, `${former}-wal`);
  else fs.rmSync(wal);
  syncDirectory(dirname(file));
}

/**
 * Gives a file the owner and the mode of the old one. Only root can keep another user, but members of its group can
 * keep that.
 */
function keepOwner(draft: string, { mode, uid, gid }: fs.BigIntStats): void {
  try {
    fs.chownSync(draft, Number(uid), Number(gid));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error;
    fs.chownSync(draft, fs.statSync(draft).uid, Number(gid));
  }
  fs.chmodSync(draft, Number(mode) & 0o666);
}

/** Returns undefined if there is no such file. As numbers, inodes above 2^53 would be rounded. */
function readStatus(file: string): fs.BigIntStats | undefined {
  return fs.statSync(file, { bigint: true, throwIfNoEntry: false });
}

function isSameFile(one: fs.BigIntStats | undefined, other: fs.BigIntStats | undefined): boolean {
  return one?.ino === other?.ino && one?.dev === other?.dev;
}

/**
 * Locks a database until the returned session is closed. Empties and deletes its write-ahead log, unless the database
 * is damaged.
 * @throws Error when another session is open, or when the file is not a database
 */
function lockUnusedDatabase(file: string): DatabaseSync {
  // Fails if the file is not a database: then a session that can write would delete the WAL next to it.
  const url = pathToFileURL(file);
  url.search = IMMUTABLE;
  const reader = new DatabaseSync(url, { readOnly: true });
  reader.exec('PRAGMA schema_version');
  reader.close();
  const lock = openLock(file);
  const wal = walPathOf(file);
  try {
    if (fs.existsSync(wal)) rewriteWal(lock, file, wal);
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock.close();
    if (!isDamage(error)) throw error;
    return lockDamagedDatabase(file);
  }
}

/** Locks a database whose schema SQLite cannot read. It cannot leave the mode of the write-ahead log. */
function lockDamagedDatabase(file: string): DatabaseSync {
  const lock = openLock(file);
  // In a new session, this keeps out readers as well.
  lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  return lock;
}

function openLock(file: string): DatabaseSync {
  return new DatabaseSync(file, { timeout: 1000 });
}
