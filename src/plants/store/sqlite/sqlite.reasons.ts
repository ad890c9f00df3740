/** Finds out why SQLite cannot use its files: its errors name neither the file nor the error of the operating system. */
import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { formatSystemError } from '../../errors/system-error';
import { walPathOf } from './sqlite.files';

/** More than what SQLite needs to open a store. */
const TRIAL_BYTES = 2 ** 16;

/** Tries the files of a store. Returns the first error, with the path; undefined if there is none. */
export function findFileReason(path: string): string | undefined {
  const wal = walPathOf(path);
  const file = wal.slice(0, -'-wal'.length);
  try {
    for (const each of [file, `${file}-journal`, wal, `${file}-shm`]) {
      // Fails if the name is too long.
      if (!fs.lstatSync(each, { throwIfNoEntry: false })) continue;
      fs.accessSync(each, fs.constants.R_OK | fs.constants.W_OK);
    }
    // Only the WAL may be opened: closing another descriptor of the other files would drop the locks of SQLite.
    if (fs.existsSync(wal)) fs.closeSync(fs.openSync(wal, 'r+'));
    fs.accessSync(dirname(file), fs.constants.W_OK | fs.constants.X_OK);
    return undefined;
  } catch (error) {
    return formatSystemError(error);
  }
}

/** Writes and syncs a file in a directory, and deletes it. Returns the error, with the path of the directory. */
export function tryToWriteIn(directory: string): string | undefined {
  const trial = join(directory, `.plant-store-${randomBytes(4).toString('hex')}.trial`);
  try {
    writeTrial(trial);
    return undefined;
  } catch (error) {
    const reason = formatSystemError(error, directory);
    return isOutOfInodes(error, directory) ? `${reason}: it has no free inode` : reason;
  } finally {
    fs.rmSync(trial, { force: true });
  }
}

function writeTrial(file: string): void {
  const descriptor = fs.openSync(file, 'wx', 0o600);
  try {
    const content = Buffer.alloc(TRIAL_BYTES);
    for (let at = 0; at < TRIAL_BYTES;) {
      // A disk that becomes full takes a part. Writing the rest reports the error.
      at += fs.writeSync(descriptor, content, at, TRIAL_BYTES - at, at);
    }
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** File systems without a fixed number of inodes, such as Btrfs, have 0 of 0 free. */
function isOutOfInodes(error: unknown, directory: string): boolean {
  if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') return false;
  const { files, ffree } = fs.statfsSync(directory);
  return files > 0 && ffree === 0;
}
