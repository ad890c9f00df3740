import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { until } from './until';

/** A control group with a memory limit, for a process and what it starts. Linux, and root, only. */
export class SmallMemory {
  private constructor(
    private readonly folder: string,
    private readonly peakFile: string,
  ) {}

  /**
   * @param size in bytes
   * @throws Error when the system allows no such thing
   */
  static make(size: number): SmallMemory {
    const name = `plant-store-${process.pid}-${Date.now()}`;
    try {
      const { parent, limit, peak } = hierarchy();
      const folder = join(parent, name);
      mkdirSync(folder);
      writeFileSync(join(folder, limit), String(size));
      return new SmallMemory(folder, join(folder, peak));
    } catch (cause) {
      throw new Error('a small memory needs Linux, root and a memory control group', { cause });
    }
  }

  /** A wrapper for a service process, which keeps its process id. */
  get wrapper(): string[] {
    return ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(this.folder, 'cgroup.procs')];
  }

  /** The most memory that was used, in MiB, files that were read or written included. */
  get peak(): number {
    return Number(readFileSync(this.peakFile, 'utf8')) / 2 ** 20;
  }

  /** The memory in use now, in MiB, without files: what the system cannot take back. */
  get anonymous(): number {
    const statistics = readFileSync(join(this.folder, 'memory.stat'), 'utf8');
    // Version 1, or 2.
    return Number(/^(?:rss|anon) (\d+)$/m.exec(statistics)?.[1]) / 2 ** 20;
  }

  /** Call it once the processes have ended. */
  async remove(): Promise<void> {
    await until(() => readFileSync(join(this.folder, 'cgroup.procs'), 'utf8') === '');
    rmdirSync(this.folder);
  }
}

function hierarchy(): { parent: string; limit: string; peak: string } {
  const own = readFileSync('/proc/self/cgroup', 'utf8');
  const first = /^\d+:(?:\w+,)*memory(?:,\w+)*:(.*)$/m.exec(own)?.[1];
  if (first !== undefined) {
    const parent = join('/sys/fs/cgroup/memory', first);
    return { parent, limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes' };
  }
  // Version 2: beside our own group, since one with processes has no limits for groups below it.
  const parent = dirname(join('/sys/fs/cgroup', /^0::(.*)$/m.exec(own)?.[1] ?? ''));
  const control = join(parent, 'cgroup.subtree_control');
  if (existsSync(control)) execFileSync('sh', ['-c', 'echo +memory > "$0"', control]);
  return { parent, limit: 'memory.max', peak: 'memory.peak' };
}
