import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { until } from './until';

/** A control group with a memory limit, for a process and what it starts. Linux, and root, only. */
export class SmallMemory {
  private constructor(private readonly folder: string) {}

  /**
   * @param size in bytes
   * @throws Error when the system allows no such thing
   */
  static make(size: number): SmallMemory {
    try {
      const { parent, limit } = hierarchy();
      const folder = join(parent, `plant-store-${process.pid}-${Date.now()}`);
      mkdirSync(folder);
      writeFileSync(join(folder, limit), String(size));
      return new SmallMemory(folder);
    } catch (cause) {
      throw new Error('a small memory needs Linux, root and a memory control group', { cause });
    }
  }

  /** A wrapper for a service process, which keeps its process id. */
  get wrapper(): string[] {
    return ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(this.folder, 'cgroup.procs')];
  }

  /** Call it once the processes have ended. */
  async remove(): Promise<void> {
    await until(() => readFileSync(join(this.folder, 'cgroup.procs'), 'utf8') === '');
    rmdirSync(this.folder);
  }
}

function hierarchy(): { parent: string; limit: string } {
  const own = readFileSync('/proc/self/cgroup', 'utf8');
  const first = /^\d+:(?:\w+,)*memory(?:,\w+)*:(.*)$/m.exec(own)?.[1];
  if (first !== undefined) {
    return { parent: join('/sys/fs/cgroup/memory', first), limit: 'memory.limit_in_bytes' };
  }
  // Version 2: beside our own group, since one with processes has no limits for groups below it.
  const parent = dirname(join('/sys/fs/cgroup', /^0::(.*)$/m.exec(own)?.[1] ?? ''));
  const control = join(parent, 'cgroup.subtree_control');
  if (existsSync(control)) execFileSync('sh', ['-c', 'echo +memory > "$0"', control]);
  return { parent, limit: 'memory.max' };
}
