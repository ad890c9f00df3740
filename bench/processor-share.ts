import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The period in which the kernel gives a process its share, in microseconds. */
const PERIOD_US = 20_000;

/** The root folder of control groups. Version 1 has a folder per controller. */
const CGROUPS = '/sys/fs/cgroup';

/** A control group that limits one process to a share of a processor core: cgroups(7). Needs root. */
export class ProcessorShare {
  private constructor(private readonly folder: string) {}

  /** Returns undefined if this machine does not let us set a limit. */
  static create(name: string, share: number): ProcessorShare | undefined {
    const isVersion2 = existsSync(join(CGROUPS, 'cgroup.controllers'));
    const root = isVersion2 ? CGROUPS : join(CGROUPS, 'cpu');
    const folder = join(root, `plant-store-bench-${name}`);
    const quota = String(Math.round(share * PERIOD_US));
    try {
      if (isVersion2) writeFileSync(join(root, 'cgroup.subtree_control'), '+cpu');
      mkdirSync(folder, { recursive: true });
      if (isVersion2) writeFileSync(join(folder, 'cpu.max'), `${quota} ${PERIOD_US}`);
      else {
        writeFileSync(join(folder, 'cpu.cfs_period_us'), String(PERIOD_US));
        writeFileSync(join(folder, 'cpu.cfs_quota_us'), quota);
      }
      return new ProcessorShare(folder);
    } catch {
      return undefined;
    }
  }

  /** Limits a process with all its threads. */
  limit(pid: number): void {
    writeFileSync(join(this.folder, 'cgroup.procs'), String(pid));
  }

  /** Removes the group, whose process must have ended. */
  remove(): void {
    rmdirSync(this.folder);
  }
}
