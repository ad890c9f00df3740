import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** Returns the path of the write-ahead log. It is next to the file to which symbolic links lead. */
export function walPathOf(path: string): string {
  return `${existsSync(path) ? realpathSync(path) : path}-wal`;
}

/**
 * Rejects files that SQLite would open although plants would be lost. SQLite deletes the WAL next to an empty
 * file. It uses a separate WAL for each hard link, so two links are two stores that overwrite each other.
 * Opening a pipe would wait for a writer.
 * @throws Error saying why the path cannot be used for a store
 */
export function assertUsableFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  const walPath = walPathOf(path);
  const walBytes = statSync(walPath, { throwIfNoEntry: false })?.size ?? 0;
  if (!stats?.size && walBytes > 0) {
    throw new Error(
      `the file is ${stats ? 'empty' : 'missing'}, but its write-ahead log ${walPath} has content: put the file back, or move the log away and run \`plant-store restore BACKUP\``,
    );
  }
  if (!stats) return;
  if (!stats.isFile()) throw new Error('it is not a regular file');
  if (stats.nlink > 1 + countFormerNames(path)) {
    throw new Error(
      `it has ${stats.nlink} hard links. Opening it under more than one name loses plants: delete the other links (symbolic links are fine)`,
    );
  }
  if (isMountPoint(realpathSync(path))) {
    throw new Error(
      'it is a mount point of its own, so its write-ahead log would be on another file system: mount the directory instead',
    );
  }
}

/** Returns the name under which `restore` keeps the file that it replaces. */
export function createFormerName(path: string): string {
  return `${path}.before-${new Date().toISOString().replaceAll(/\D/g, '')}`;
}

/**
 * Counts the other names of a file that `restore` created. If it is killed before it has put the new file in place, the
 * old file has two names. Nobody opens it under the other one.
 */
function countFormerNames(path: string): number {
  const file = realpathSync(path);
  const { ino, dev } = statSync(file, { bigint: true });
  return readdirSync(dirname(file)).filter((name) => {
    if (!name.startsWith(`${basename(file)}.before-`)) return false;
    const other = statSync(join(dirname(file), name), { bigint: true, throwIfNoEntry: false });
    return other?.ino === ino && other.dev === dev;
  }).length;
}

/** Whether a path is a mount point. Returns false on systems without `/proc/self/mountinfo`. */
function isMountPoint(path: string): boolean {
  const list = '/proc/self/mountinfo';
  if (!existsSync(list)) return false;
  // proc_pid_mountinfo(5): the fifth field, with white space and backslashes as octal numbers.
  const unescape = (_: string, octal: string) => String.fromCharCode(parseInt(octal, 8));
  const lines = readFileSync(list, 'utf8').split('\n');
  return lines.some((line) => line.split(' ')[4]?.replace(/\\(\d{3})/g, unescape) === path);
}

/**
 * Creates a directory and its parents, durably and only for this user. Does not use the `recursive`
 * option of `mkdirSync`, which loops forever where a directory cannot be created, as below `/proc`.
 */
export function makeDirectory(directory: string): void {
  if (existsSync(directory)) return;
  const parent = dirname(directory);
  makeDirectory(parent);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  syncDirectory(parent);
}

/** Gives a new file mode 0600 and the owner of its directory: a service can use it although root created it. */
export function protectNewFile(path: string): void {
  chmodSync(path, 0o600);
  const { uid, gid } = statSync(dirname(path));
  try {
    chownSync(path, uid, gid);
  } catch {
    // Only root may give a file to another user, and not on every file system.
  }
}

/** Makes new names in a directory durable. Does nothing on a file system that cannot do that, as SQLite does. */
export function syncDirectory(directory: string): void {
  // Windows cannot open a directory.
  if (process.platform === 'win32') return;
  let descriptor: number | undefined;
  try {
    descriptor = openSync(directory, 'r');
    fsyncSync(descriptor);
  } catch (error) {
    const unsupported = ['EACCES', 'EBADF', 'EINVAL', 'ENOSYS', 'ENOTSUP', 'EPERM'];
    if (!unsupported.includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
