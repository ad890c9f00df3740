import { setImmediate } from 'node:timers/promises';
import type { Insertion } from '../../src/plants';
import type { PlantStoreError } from '../../src/plants/errors/errors';
import { GroupCommit } from '../../src/plants/persistence/group-commit';
import type { KeyedPlant } from '../../src/plants/persistence/keyed-plant';
import { pass } from './clock';

/** Milliseconds after which a batch has timed out. */
export const DEADLINE = 10_000;
/** The weight at which a batch is full. */
export const BATCH_WEIGHT = 1024;
/** The weight at which the queue is full. */
export const QUEUE_WEIGHT = 16_384;

/** @param weight in a batch and in the queue */
export function plantOf(id: number, weight = 1): KeyedPlant {
  return { id: BigInt(id), name: 'x'.repeat(4096 * (weight - 1)) };
}

/** A batch that the test ends. */
interface ManualBatch {
  readonly ids: readonly number[];
  readonly succeed: (outcomes?: (Insertion | PlantStoreError)[]) => void;
  readonly fail: (error: Error) => void;
}

/** A group commit over a store whose batches the test settles by hand. */
export function makeGroupCommit(): {
  commits: GroupCommit;
  batches: ManualBatch[];
  /** What was reported at the end of each batch. */
  ends: number[];
  submit: (id: number, weight?: number) => Promise<Insertion>;
  /** Commits one plant, which takes so many milliseconds. */
  commitOne: (time: number) => Promise<void>;
} {
  const batches: ManualBatch[] = [];
  const ends: number[] = [];
  const commits = new GroupCommit(
    (plants) => {
      const { promise, resolve, reject } = Promise.withResolvers<(Insertion | PlantStoreError)[]>();
      const succeed = (outcomes = plants.map((): Insertion | PlantStoreError => 'created')) => {
        resolve(outcomes);
      };
      batches.push({ ids: plants.map(({ id }) => Number(id)), succeed, fail: reject });
      return promise;
    },
    (time) => ends.push(time),
  );
  const submit = (id: number, weight = 1) => commits.submit(plantOf(id, weight));
  const commitOne = async (time: number): Promise<void> => {
    const plant = submit(1);
    await turn();
    pass(time);
    batches.at(-1)?.succeed();
    await plant;
    await turn();
  };
  return { commits, batches, ends, submit, commitOne };
}

/** Waits for the end of a turn of the event loop, where batches start. */
export async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}
