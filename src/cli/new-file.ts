import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { constants } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError } from '../plants/errors/operator.error';
import { formatSystemError } from '../plants/errors/system-error';
import { syncDirectory } from '../plants/store/sqlite/sqlite.files';

const END_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Writes a file that appears under its name only after it is complete and synced. Until then it is a hidden file with
 * a name of its own, the draft. It is removed when writing fails, and when the process ends, except by SIGKILL.
 * @param write writes to the path of the draft, an empty file in the same directory, without blocking the thread
 * @param replace called with the path of the complete draft, to rename it. By default, the name must be free
 * @throws OperatorError when the file already exists
 */
export async function writeNewFile(
  path: string,
  write: (draft: string) => Promise<void>,
  replace?: (draft: string) => void,
): Promise<void> {
  const file = resolve(path);
  if (!replace) assertFree(file);
  const id = randomBytes(4).toString('hex');
  const draft = join(dirname(file), `.${basename(file)}.${id}.part`);
  const removeDraft = (): void => {
    // SQLite may leave a journal next to the draft.
    for (const suffix of ['', '-journal']) fs.rmSync(draft + suffix, { force: true });
  };
  const endBySignal = (signal: NodeJS.Signals): void => {
    removeDraft();
    // The signal has no listener now, so it ends the process at once, even while another thread is in SQLite.
    process.kill(process.pid, signal);
    // Only the first process of a container gets here.
    process.exit(128 + constants.signals[signal]);
  };
  // Before the draft exists, so that no signal leaves it behind.
  process.once('exit', removeDraft);
  for (const signal of END_SIGNALS) process.once(signal, endBySignal);

  const descriptor = fs.openSync(draft, 'wx', 0o600);
  try {
    await write(draft);
    fs.fsyncSync(descriptor);
    (replace ?? linkOrRename)(draft, file);
  } catch (error) {
    throw nameFile(error, file);
  } finally {
    removeDraft();
    fs.closeSync(descriptor);
    process.off('exit', removeDraft);
    for (const signal of END_SIGNALS) process.off(signal, endBySignal);
  }
  syncDirectory(dirname(file));
}

/** Says which file could not be written: errors of writing and syncing do not name it. */
function nameFile(error: unknown, file: string): unknown {
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  const isWriting = syscall === 'write' || syscall === 'fsync';
  if (!isWriting || path !== undefined || code === 'EPIPE') return error;
  const message = `${file} cannot be written: ${formatSystemError(error)}.`;
  return new OperatorError(message, { cause: error });
}

/** Gives a file a name that must be free. The file may keep its old name, too. */
export function linkOrRename(from: string, to: string): void {
  try {
    // Unlike a rename, a link never replaces a file that has appeared in the meantime.
    fs.linkSync(from, to);
  } catch {
    assertFree(to);
    // The file system has no hard links.
    fs.renameSync(from, to);
  }
}

function assertFree(file: string): void {
  if (!fs.lstatSync(file, { throwIfNoEntry: false })) return;
  throw new OperatorError(`${file} already exists. Choose another file name.`);
}

/** @throws OperatorError, which ends with the advice, when the file does not exist or is not a regular file */
export function requireFile(path: string, advice: string): void {
  const status = fs.statSync(path, { throwIfNoEntry: false });
  if (!status) throw new OperatorError(`${path} does not exist. ${advice}`);
  if (!status.isFile()) throw new OperatorError(`${path} is not a regular file. ${advice}`);
}
