import { randomUUID } from 'node:crypto';
import { existsSync, linkSync, rmSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError } from '../plants/errors/operator.error';
import { syncDirectory } from '../plants/persistence/sqlite/sqlite.files';

/**
 * Writes a file that appears under its name only after it is complete and synced. Removes the unfinished file if
 * that fails, and if SIGINT or SIGTERM ends the process.
 *
 * @param write called with the path of an empty file to fill, in the same directory
 * @param replace called with the path of the complete file, to rename it. By default, the name must be free
 * @throws OperatorError when the file already exists
 */
export async function writeNewFile(
  path: string,
  write: (draft: string) => Promise<void>,
  replace?: (draft: string) => void,
): Promise<void> {
  const file = resolve(path);
  if (!replace && existsSync(file)) {
    throw new OperatorError(`${file} already exists. Choose another file name.`);
  }
  const draft = join(dirname(file), `.${basename(file)}.${randomUUID()}.part`);
  // SQLite may leave a journal next to the draft.
  const remove = (): void => {
    for (const suffix of ['', '-journal']) rmSync(draft + suffix, { force: true });
  };
  process.prependOnceListener('SIGINT', remove).prependOnceListener('SIGTERM', remove);
  try {
    await (await open(draft, 'wx', 0o600)).close();
    await write(draft);
    const handle = await open(draft);
    await handle.sync().finally(() => handle.close());
    // A link, unlike a rename, never replaces a file that has appeared in the meantime.
    if (replace) replace(draft);
    else linkSync(draft, file);
  } finally {
    remove();
    process.off('SIGINT', remove).off('SIGTERM', remove);
  }
  syncDirectory(dirname(file));
}

/**
 * Checks that a file that a command reads exists. Returns its size in bytes.
 *
 * @param advice what to do if the file cannot be read, as a sentence
 * @throws OperatorError when the file does not exist or is not a regular file
 */
export function requireFile(path: string, advice: string): number {
  const status = statSync(path, { throwIfNoEntry: false });
  if (!status) throw new OperatorError(`${path} does not exist. ${advice}`);
  if (status.isFile()) return status.size;
  throw new OperatorError(`${path} is not a regular file. ${advice}`);
}
