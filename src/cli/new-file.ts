import { randomUUID } from 'node:crypto';
import { existsSync, rmSync, statSync } from 'node:fs';
import { link, open, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError } from '../plants/errors/operator.error';
import { syncDirectory } from '../plants/persistence/sqlite/sqlite.files';

type Work = (draft: string) => Promise<void>;

/**
 * Writes a file that appears under its name only when all of it is on the disk.
 *
 * @param write is given the name of an empty file to fill
 * @throws OperatorError when there is a file of this name, or no directory for it
 */
export async function writeNewFile(path: string, write: Work): Promise<void> {
  const file = resolve(path);
  assertFolder(file);
  assertFree(file);
  await writeDraft(file, write, (draft) =>
    // A link, because renaming would overwrite a file of this name.
    link(draft, file).catch(async () => {
      assertFree(file);
      // A file system without hard links, FAT for example.
      await rename(draft, file);
    }),
  );
}

/**
 * Writes a file under another name in the same folder, and gives it its name when all of it is on the
 * disk. When that fails, what was written is removed.
 */
export async function writeDraft(file: string, write: Work, place: Work): Promise<void> {
  const draft = join(dirname(file), `.${basename(file)}.${randomUUID()}.part`);
  try {
    await (await open(draft, 'wx', 0o600)).close();
    await write(draft);
    const handle = await open(draft);
    await handle.sync().finally(() => handle.close());
    await place(draft);
  } finally {
    // With the files that SQLite may leave beside it.
    for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(draft + suffix, { force: true });
  }
  syncDirectory(dirname(file));
}

/** @throws OperatorError when the folder of a file does not exist */
export function assertFolder(file: string): void {
  const folder = dirname(resolve(file));
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  throw new OperatorError(`There is no directory ${folder}. Name a file in one that exists.`);
}

function assertFree(file: string): void {
  if (existsSync(file)) throw new OperatorError(`${file} exists already. Name a new file.`);
}

/**
 * The size, in bytes, of a file that a command reads.
 *
 * @param advice what to do when there is none
 * @param mayBePipe whether a pipe or a device will do
 * @throws OperatorError when there is no such file
 */
export function sizeOf(path: string, advice: string, mayBePipe = false): number {
  const status = statSync(path, { throwIfNoEntry: false });
  if (!status) throw new OperatorError(`${path} does not exist. ${advice}`);
  if (status.isDirectory()) throw new OperatorError(`${path} is a directory. ${advice}`);
  if (status.isFile() || mayBePipe) return status.size;
  throw new OperatorError(`${path} is not a regular file. ${advice}`);
}
