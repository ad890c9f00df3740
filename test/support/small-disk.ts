import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { TestProcess } from './test-process';

/**
 * A file system of limited size, mounted over a folder. It is a tmpfs in a new mount namespace, so mounting it
 * needs no privileges. Needs Linux with user namespaces.
 */
export class SmallDisk {
  private constructor(
    private readonly holder: TestProcess,
    private readonly folder: string,
  ) {}

  /**
   * @param folder an empty folder
   * @param sizeBytes the size of the file system
   * @throws Error if the system does not allow it
   */
  static async mount(folder: string, sizeBytes: number): Promise<SmallDisk> {
    const script = 'mount -t tmpfs -o size="$1" none "$2" && echo mounted && exec sleep 3600';
    const command = ['unshare', '-rm', 'sh', '-c', script, 'sh', String(sizeBytes), folder];
    const holder = new TestProcess(command, { env: process.env });
    await holder.waitForOutput(/mounted/);
    return new SmallDisk(holder, folder);
  }

  /** The path of the folder for processes outside the namespace. */
  get path(): string {
    return `/proc/${String(this.holder.child.pid)}/root${this.folder}`;
  }

  /** A wrapper that runs a process in the namespace in which the disk is mounted. */
  get wrapper(): string[] {
    return ['nsenter', '-t', String(this.holder.child.pid), '-U', '-m', '--preserve-credentials'];
  }

  /** Fills the disk until at most this number of bytes is free. */
  fill(maxFreeBytes = 0): void {
    const descriptor = openSync(join(this.path, 'filler'), 'a');
    const page = Buffer.alloc(4096);
    const freeBytes = ({ bavail, bsize } = statfsSync(this.path)) => bavail * bsize;
    try {
      while (freeBytes() > maxFreeBytes) writeSync(descriptor, page);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
    closeSync(descriptor);
  }

  /** Frees the space that {@link fill} used. */
  release(): void {
    rmSync(join(this.path, 'filler'), { force: true });
  }

  async unmount(): Promise<void> {
    await this.holder.end('SIGKILL');
  }
}
