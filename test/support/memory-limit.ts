import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Where groups that limit memory are made, and the file that has their limit: cgroups of version 2, and of version 1. */
const CONTROLLERS = [
  ['/sys/fs/cgroup', 'memory.max'],
  ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'],
] as const;

/** What Node.js chooses for its heap in a container with 512 MiB. */
const HEAP_OPTIONS = '--max-old-space-size=256 --max-semi-space-size=4';

/** A limit of 512 MiB for the memory of a process, as a container has it. */
export interface MemoryLimit {
  /** Wraps a command. Beyond the limit, the kernel ends its process. Empty if this process may not make a cgroup. */
  readonly wrapper: string[];
  /** Variables for the command: without a cgroup, the heap is as large as within one. */
  readonly environment: Readonly<Record<string, string>>;
  /** Removes the limit once its process has ended. */
  readonly remove: () => void;
}

export const MEMORY_LIMIT_MIB = 512;

export function limitMemory(): MemoryLimit {
  for (const [folder, file] of CONTROLLERS) {
    const group = join(folder, `plant-store-test-${process.pid}`);
    try {
      mkdirSync(group);
    } catch {
      continue;
    }
    const remove = (): void => {
      rmdirSync(group);
    };
    if (existsSync(join(group, file))) {
      writeFileSync(join(group, file), String(MEMORY_LIMIT_MIB * 2 ** 20));
      const wrapper = ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(group, 'cgroup.procs')];
      return { wrapper, environment: {}, remove };
    }
    remove();
  }
  return { wrapper: [], environment: { NODE_OPTIONS: HEAP_OPTIONS }, remove: () => undefined };
}
