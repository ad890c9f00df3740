import { setImmediate } from 'node:timers/promises';
import type { PlantStoreError } from '../../src/plants/errors/errors';
import { GroupCommit, type GroupCommitOptions } from '../../src/plants/persistence/group-commit';
import { pass } from './clock';

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
  /** Commits one item, which takes so many milliseconds. */
  commitOne: (time: number) => Promise<void>;
} {
  const batches: ManualBatch[] = [];
  const commits = new GroupCommit<number, number>({
    commit: (items) => {
      const { promise, resolve, reject } = Promise.withResolvers<(number | PlantStoreError)[]>();
      const succeed = (outcomes = items.map((item): number | PlantStoreError => item * 10)) => {
        resolve(outcomes);
      };
      batches.push({ items, succeed, fail: reject });
      return promise;
    },
    probe: () => Promise.resolve(),
    weigh: () => 1,
    batchWeight: 100,
    queueWeight: 1000,
    queueTime: 10_000,
    deadline: DEADLINE,
    ...options,
  });
  const commitOne = async (time: number): Promise<void> => {
    const item = commits.submit(1);
    await turn();
    pass(time);
    batches.at(-1)?.succeed();
    await item;
    await turn();
  };
  return { commits, batches, commitOne };
}

/** Waits for the end of a turn of the event loop, where batches start. */
export async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
