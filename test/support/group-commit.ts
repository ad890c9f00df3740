import { setImmediate } from 'node:timers/promises';
import type { PlantStoreError } from '../../src/plants/errors/errors';
import { GroupCommit, type GroupCommitOptions } from '../../src/plants/persistence/group-commit';

/** Milliseconds after which a batch has timed out. */
export const DEADLINE = 10_000;

/** A batch that the test ends. */
interface ManualBatch {
  readonly items: readonly number[];
  readonly succeed: (outcomes?: (number | PlantStoreError)[]) => void;
  readonly fail: (error: Error) => void;
}

/** A group commit over a store whose batches the test settles by hand. */
export function makeGroupCommit(options: Partial<GroupCommitOptions<number, number>> = {}): {
  commits: GroupCommit<number, number>;
  batches: ManualBatch[];
} {
  const batches: ManualBatch[] = [];
  const commits = new GroupCommit<number, number>({
    commit: (items) =>
      new Promise((resolve, reject) => {
        batches.push({
          items,
          succeed: (outcomes = items.map((item) => item * 10)) => {
            resolve(outcomes);
          },
          fail: reject,
        });
      }),
    weigh: () => 1,
    batchWeight: 100,
    queueWeight: 1000,
    queueTime: 10_000,
    deadline: DEADLINE,
    timedOutLimit: 1,
    ...options,
  });
  return { commits, batches };
}

/** Waits for the end of a turn of the event loop, where batches start. */
export async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
