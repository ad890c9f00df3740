import { existsSync, rmSync } from 'node:fs';
import { type FileHandle, open, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { sync } from './sync';

/**
 * A file that appears under its name only when all of it is on the disk. Until then it has another
 * name in the same folder.
 */
export class NewFile {
  /** The name that it has until it is finished. */
  readonly draft: string;
  private readonly path: string;

  /** @throws Error when there is a file of this name */
  constructor(path: string) {
    this.path = resolve(path);
    this.draft = join(dirname(this.path), `.${basename(this.path)}.${process.pid}.part`);
    this.assertFree();
  }

  /** Creates the draft, empty. */
  create(): Promise<FileHandle> {
    return open(this.draft, 'wx', 0o600);
  }

  /** Syncs the draft and gives it its name. */
  async finish(): Promise<void> {
    await sync(this.draft);
    this.assertFree();
    await rename(this.draft, this.path);
    if (process.platform !== 'win32') await sync(dirname(this.path));
  }

  /** Removes the draft, if there is one. */
  discard(): void {
    rmSync(this.draft, { force: true });
  }

  private assertFree(): void {
    if (existsSync(this.path)) throw new Error(`${this.path} exists already. Name a new file.`);
  }
}
