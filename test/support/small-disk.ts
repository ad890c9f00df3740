import { closeSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { TestProcess } from './test-process';

/**
 * A file system of its own size over a folder, a tmpfs in a mount namespace of its own, so that no
 * privilege is needed. Linux with user namespaces only.
 */
export class SmallDisk {
  private constructor(
    private readonly holder: TestProcess,
    private readonly folder: string,
  ) {}

  /**
   * @param folder an empty one
   * @param size in bytes
   * @throws Error when the system allows no such thing
   */
  static async mount(folder: string, size: number): Promise<SmallDisk> {
    const script = 'mount -t tmpfs -o size="$1" none "$2" && echo mounted && exec sleep 3600';
    const command = ['unshare', '-rm', 'sh', '-c', script, 'sh', String(size), folder];
    const holder = new TestProcess(command, { env: process.env });
    await holder.says(/mounted/).catch((cause: unknown) => {
      const needed = 'a small disk needs Linux, unshare (util-linux) and user namespaces';
      throw new Error(needed, { cause });
    });
    return new SmallDisk(holder, folder);
  }

  /** The folder as a process outside the namespace reaches it. */
  get path(): string {
    return `/proc/${String(this.holder.child.pid)}/root${this.folder}`;
  }

  /** Runs a program where the disk is mounted: a wrapper for a service process. */
  get wrapper(): string[] {
    return ['nsenter', '-t', String(this.holder.child.pid), '-U', '-m', '--preserve-credentials'];
  }

  /** Leaves at most so many bytes free. */
  fill(free = 0): void {
    const descriptor = openSync(join(this.path, 'filler'), 'a');
    const page = Buffer.alloc(4096);
    const left = ({ bavail, bsize } = statfsSync(this.path)) => bavail * bsize;
    try {
      while (left() > free) writeSync(descriptor, page);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
    closeSync(descriptor);
  }

  /** Takes back what {@link fill} took. */
  release(): void {
    rmSync(join(this.path, 'filler'), { force: true });
  }

  async unmount(): Promise<void> {
    await this.holder.end('SIGKILL');
  }
}
