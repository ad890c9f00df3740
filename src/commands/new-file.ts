import { existsSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, link, open, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError } from '../errors';

/** What link(2) fails with on a file system without hard links, FAT for example. */
const LINKLESS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/**
 * A file that appears under its name only when all of it is on the disk. Until then it has another
 * name in the same folder.
 */
export class NewFile {
  /** The name that it has until it is finished. */
  readonly draft: string;
  private readonly path: string;

  /** @throws OperatorError when there is a file of this name, or no directory for it */
  constructor(path: string) {
    this.path = resolve(path);
    this.draft = join(dirname(this.path), `.${basename(this.path)}.${process.pid}.part`);
    const folder = dirname(this.path);
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
      throw new OperatorError(`There is no directory ${folder}. Name a file in one that exists.`);
    }
    this.assertFree();
  }

  create(): Promise<FileHandle> {
    return open(this.draft, 'wx', 0o600);
  }

  /**
   * Syncs the draft and gives it its name.
   *
   * @throws OperatorError when another file has got that name meanwhile; that file stays
   */
  async finish(): Promise<void> {
    await sync(this.draft);
    await this.giveName();
    if (process.platform !== 'win32') await sync(dirname(this.path));
  }

  discard(): void {
    rmSync(this.draft, { force: true });
  }

  /** By a link: renaming would overwrite a file of this name. */
  private async giveName(): Promise<void> {
    try {
      await link(this.draft, this.path);
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (code === 'EEXIST') throw this.existsAlready();
      if (!LINKLESS.has(code)) throw error;
      // Here a file that appears between the two calls is overwritten.
      this.assertFree();
      await rename(this.draft, this.path);
      return;
    }
    await unlink(this.draft);
  }

  private assertFree(): void {
    if (existsSync(this.path)) throw this.existsAlready();
  }

  private existsAlready(): OperatorError {
    return new OperatorError(`${this.path} exists already. Name a new file.`);
  }
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

/** Makes a file or a directory durable: what it holds survives a crash of the machine. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync().finally(() => handle.close());
}
