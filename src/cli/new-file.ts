import { randomUUID } from 'node:crypto';
import { existsSync, rmSync, statSync } from 'node:fs';
import { link, open, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError, syncDirectory } from '../plants/program';

/**
 * Writes a file that appears under its name only when all of it is on the disk. Until then it has
 * another name in the same folder; when the writing fails, it is removed.
 *
 * @param write is given the name of an empty file to fill
 * @throws OperatorError when there is a file of this name, or no directory for it
 */
export async function writeNewFile(
  path: string,
  write: (draft: string) => Promise<void>,
): Promise<void> {
  const file = resolve(path);
  assertFolder(file);
  assertFree(file);
  const draft = join(dirname(file), `.${basename(file)}.${randomUUID()}.part`);
  try {
    await (await open(draft, 'wx', 0o600)).close();
    await write(draft);
    await sync(draft);
    // A link, because renaming would overwrite a file of this name.
    await link(draft, file).catch(async () => {
      assertFree(file);
      // A file system without hard links, FAT for example.
      await rename(draft, file);
    });
  } finally {
    rmSync(draft, { force: true });
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
 * @throws OperatorError when there is no file of this name
 */
export function sizeOf(path: string, advice: string): number {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status && !status.isDirectory()) return status.size;
  throw new OperatorError(`${path} ${status ? 'is a directory' : 'does not exist'}. ${advice}`);
}

/** Makes a file durable: what it holds survives a crash of the machine. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}
