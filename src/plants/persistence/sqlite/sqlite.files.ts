import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { CutFileError } from './sqlite.errors';

/** The files of a store. Files are known by device and inode number; undefined when they do not exist. */
export interface StoreFiles {
  readonly database: string | undefined;
  readonly databaseSize: number;
  readonly log: string | undefined;
  readonly logSize: number;
}

/** What is known of a store that was open before. */
export interface FormerStore {
  readonly identity: string;
  /** `unseen`: another thread had it open. `cut`: its database file became shorter than it may be. */
  readonly state: 'unseen' | 'whole' | 'cut';
  /** Its files when it was last in order, unless it is unseen. */
  readonly files?: StoreFiles;
  /** The plant that was inserted last: where the table may be damaged. */
  readonly lastId?: bigint | undefined;
}

/** The write-ahead log of a database. SQLite puts it beside the file that symbolic links lead to. */
export function logPath(path: string): string {
  return `${existsSync(path) ? realpathSync(path) : path}-wal`;
}

export function readFiles(path: string, log: string): StoreFiles {
  const database = statSync(path, { throwIfNoEntry: false });
  const logFile = statSync(log, { throwIfNoEntry: false });
  return {
    database: idOf(database),
    databaseSize: database?.size ?? 0,
    log: idOf(logFile),
    logSize: logFile?.size ?? 0,
  };
}

function idOf(stats: Stats | undefined): string | undefined {
  return stats && `${stats.dev}:${stats.ino}`;
}

/**
 * Opening a pipe would wait for whoever writes to it. Beside each name of a file SQLite keeps another
 * log, so two names of one file are two stores that overwrite each other. And a file that is mounted
 * alone has its log on another file system.
 *
 * @throws Error saying why a path cannot be that of a store
 */
export function assertUsableFile(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return;
  if (stats.isDirectory()) throw new Error('it is a directory');
  if (!stats.isFile()) throw new Error('it is not a regular file');
  if (stats.nlink > 1) {
    throw new Error(
      `it has ${stats.nlink} names (hard links), and under each of them plants would be lost: remove the others. A symbolic link may lead to it`,
    );
  }
  if (isMountPoint(realpathSync(path))) {
    throw new Error(
      'it is mounted alone, without its write-ahead log, so plants would be lost: mount its directory',
    );
  }
}

/** Where the system does not list its mounts, no file is known to be one. */
function isMountPoint(path: string): boolean {
  const list = '/proc/self/mountinfo';
  if (!existsSync(list)) return false;
  // proc_pid_mountinfo(5): the fifth field, with white space and backslashes as octal numbers.
  const mountPoints = readFileSync(list, 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '');
  const unescape = (_: string, octal: string) => String.fromCharCode(parseInt(octal, 8));
  return mountPoints.some((each) => each.replace(/\\(\d{3})/g, unescape) === path);
}

/**
 * SQLite deletes the log beside an empty file, and applies the log beside another database to that
 * one. Either would destroy plants, so such files are not opened at all.
 *
 * @param former the store that was in use; if undefined, a missing file may be created
 */
export function assertOpenable(
  files: StoreFiles,
  log: string,
  former: FormerStore | undefined,
): void {
  const what = files.database === undefined ? 'missing' : 'empty';
  if (files.logSize === 0) {
    if (files.databaseSize > 0 || !former) return;
    throw new Error(
      `the file is ${what}: restore the database file, or restart the service to create a new one`,
    );
  }
  if (files.databaseSize === 0) {
    throw new Error(
      `the file is ${what}, but its write-ahead log ${log} has content: put the file back, or move the log away and run \`plant-store restore BACKUP\``,
    );
  }
  if (files.log !== former?.files?.log) return;
  if (files.database !== former?.files?.database) {
    throw new Error(
      `the file was replaced, but ${log} still belongs to the previous file: put the previous file back, or move the log away`,
    );
  }
  if (former?.state === 'cut') throw new CutFileError();
}

/**
 * Creates a directory and its parents, durably and for this user alone. Not by the option `recursive`
 * of `mkdirSync`: it tries forever where a directory exists and none can be made in it, as below `/proc`.
 */
export function makeDirectory(directory: string): void {
  const parent = dirname(directory);
  if (parent === directory || isDirectory(directory)) return;
  makeDirectory(parent);
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isDirectory(directory)) throw error;
  }
  syncDirectory(parent);
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

export function syncDirectory(directory: string): void {
  if (process.platform === 'win32') return;
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
