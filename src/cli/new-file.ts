import { randomUUID } from 'node:crypto';
import { existsSync, rmSync, statSync } from 'node:fs';
import { link, open, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError } from '../plants/errors/operator.error';
import { syncDirectory } from '../plants/persistence/sqlite/sqlite.files';

type Work = (draft: string) => Promise<void>;

/**
 * Writes a file that appears under its name only after it is complete and synced.
 *
 * @param write called with the path of an empty file to fill
 * @throws OperatorError when the file already exists, or its directory does not exist
 */
export async function writeNewFile(path: string, write: Work): Promise<void> {
  const file = resolve(path);
  assertParentDirectory(file);
  assertNotExists(file);
  await writeDraft(file, write, (draft) =>
    // Links the file, because renaming would overwrite an existing file.
    link(draft, file).catch(async () => {
      assertNotExists(file);
      // The file system has no hard links, for example FAT.
      await rename(draft, file);
    }),
  );
}

/**
 * Writes a draft in the same directory, syncs it, and publishes it under the name of the file. Removes the
 * draft if that fails.
 *
 * @param publish called with the path of the complete draft, to give it its name
 */
export async function writeDraft(file: string, write: Work, publish: Work): Promise<void> {
  const draft = join(dirname(file), `.${basename(file)}.${randomUUID()}.part`);
  try {
    await (await open(draft, 'wx', 0o600)).close();
    await write(draft);
    const handle = await open(draft);
    await handle.sync().finally(() => handle.close());
    await publish(draft);
  } finally {
    // SQLite may leave files next to the draft.
    for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(draft + suffix, { force: true });
  }
  syncDirectory(dirname(file));
}

/** @throws OperatorError when the directory of a file does not exist */
export function assertParentDirectory(file: string): void {
  const directory = dirname(resolve(file));
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new OperatorError(
    `Directory ${directory} does not exist. Choose a file in an existing directory.`,
  );
}

function assertNotExists(file: string): void {
  if (existsSync(file))
    throw new OperatorError(`${file} already exists. Choose another file name.`);
}

/**
 * Checks that a file that a command reads exists. Returns its size in bytes.
 *
 * @param advice what to do if the file cannot be read, as a sentence
 * @param mayBePipe whether a pipe or a device is allowed
 * @throws OperatorError when the file does not exist or is not a regular file
 */
export function requireFile(path: string, advice: string, mayBePipe = false): number {
  const status = statSync(path, { throwIfNoEntry: false });
  if (!status) throw new OperatorError(`${path} does not exist. ${advice}`);
  if (status.isDirectory()) throw new OperatorError(`${path} is a directory. ${advice}`);
  if (status.isFile() || mayBePipe) return status.size;
  throw new OperatorError(`${path} is not a regular file. ${advice}`);
}
