import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { until } from './until';

/** A control group with a memory limit, for a process and its child processes. Needs Linux and root. */
export class SmallMemory {
  private constructor(private readonly folder: string) {}

  /**
   * @param limitBytes the memory limit
   * @throws Error if the system does not allow it
   */
  static create(limitBytes: number): SmallMemory {
    try {
      const { parent, limitFile } = findHierarchy();
      const folder = join(parent, `plant-store-${process.pid}-${Date.now()}`);
      mkdirSync(folder);
      writeFileSync(join(folder, limitFile), String(limitBytes));
      return new SmallMemory(folder);
    } catch (cause) {
      throw new Error('a small memory needs Linux, root and a memory control group', { cause });
    }
  }

  /** A wrapper that runs a process in the group, under the same process id as the wrapper. */
  get wrapper(): string[] {
    return ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(this.folder, 'cgroup.procs')];
  }

  /** Removes the group, once all of its processes have ended. */
  async remove(): Promise<void> {
    await until(() => readFileSync(join(this.folder, 'cgroup.procs'), 'utf8') === '');
    rmdirSync(this.folder);
  }
}

/** Returns the parent of the new group, and the name of the file for its limit, in cgroup v1 or v2. */
function findHierarchy(): { parent: string; limitFile: string } {
  const own = readFileSync('/proc/self/cgroup', 'utf8');
  const first = /^\d+:(?:\w+,)*memory(?:,\w+)*:(.*)$/m.exec(own)?.[1];
  if (first !== undefined) {
    return { parent: join('/sys/fs/cgroup/memory', first), limitFile: 'memory.limit_in_bytes' };
  }
  // Version 2: a sibling of our own group, because a group with processes cannot limit its child groups.
  const parent = dirname(join('/sys/fs/cgroup', /^0::(.*)$/m.exec(own)?.[1] ?? ''));
  const control = join(parent, 'cgroup.subtree_control');
  if (existsSync(control)) execFileSync('sh', ['-c', 'echo +memory > "$0"', control]);
  return { parent, limitFile: 'memory.max' };
}
