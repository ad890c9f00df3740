import fc from 'fast-check';
import { advanceClock, restoreClock, stopClock, waitForTurn } from '../../../test/support/clock';
import { OutcomeUnknownError, UnavailableError } from '../errors/errors';
import type { InsertOutcome } from '../plants.repository';
import { type BatchEnd, GroupCommit } from './group-commit';
import type { KeyedPlant } from './idempotency';
import { type FailureReach, type InsertResult, StoreFailure } from './store-driver';

const COMMIT_TIMEOUT_MS = 10_000;
/** The weight at which a batch is full. */
const MAX_BATCH_WEIGHT = 1024;
/** The weight of the queue from which plants are rejected. */
const MAX_QUEUE_WEIGHT = 16_384;

/** Creates a plant that has this weight in a batch and in the queue. */
function createPlant(id: number, weight = 1): KeyedPlant {
  return { id: BigInt(id), name: 'x'.repeat(4096 * (weight - 1)) };
}

/** A batch that is in progress until the test ends it. */
interface ManualBatch {
  readonly ids: readonly number[];
  readonly succeed: (outcomes?: InsertResult[]) => void;
  readonly fail: (error: Error) => void;
}

/** Creates a group commit on a store whose batches the test ends. */
function createGroupCommit(maxBatches = 1) {
  const batches: ManualBatch[] = [];
  const ended: BatchEnd[] = [];
  const commits = new GroupCommit({
    maxBatches,
    commit: (plants) => {
      const { promise, resolve, reject } = Promise.withResolvers<InsertResult[]>();
      const succeed = (outcomes = plants.map((): InsertResult => 'created')) => {
        resolve(outcomes);
      };
      batches.push({ ids: plants.map(({ id }) => Number(id)), succeed, fail: reject });
      return promise;
    },
  });
  commits.observers.push((batch) => ended.push(batch));
  const submit = (id: number, weight = 1) => commits.submit(createPlant(id, weight));
  const commitOne = async (durationMs: number): Promise<void> => {
    const plant = submit(1);
    await waitForTurn();
    advanceClock(durationMs);
    batches.at(-1)?.succeed();
    await plant;
    await waitForTurn();
  };
  return { commits, batches, ended, submit, commitOne };
}

beforeEach(stopClock);
afterEach(async () => {
  // The last plants of a test may still begin a batch, with a timer.
  await waitForTurn();
  restoreClock();
});

describe('GroupCommit', () => {
  it('commits a single plant immediately, and plants submitted during its commit together', async () => {
    const { commits, batches, submit } = createGroupCommit();

    const outcomes = [submit(1)];
    await waitForTurn();
    outcomes.push(submit(2), submit(3), submit(4), submit(5));
    await waitForTurn();

    expect(batches).toHaveLength(1);
    expect(commits.queueLength).toBe(4);
    batches[0]?.succeed();
    await waitForTurn();
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2, 3, 4, 5]]);
    expect(commits.queueLength).toBe(0);
    batches[1]?.succeed(['taken', 'replayed', 'keyReused', new StoreFailure('row', 'rejected')]);
    await expect(outcomes.pop()).rejects.toThrow(StoreFailure);
    expect(await Promise.all(outcomes)).toEqual(['created', 'taken', 'replayed', 'keyReused']);
  });

  it('commits the plants of one turn of the event loop together', async () => {
    const { batches, submit } = createGroupCommit();

    void submit(1);
    await Promise.resolve();
    void submit(2);
    await waitForTurn();

    expect(batches.map(({ ids }) => ids)).toEqual([[1, 2]]);
  });

  it('adds no weight for up to 4095 characters of all strings together', async () => {
    const { commits, batches } = createGroupCommit();
    const half = 'x'.repeat(2048);
    for (let id = 0n; id < MAX_BATCH_WEIGHT; id++) {
      void commits.submit({ id, name: half, tag: id % 2n === 0n ? half : half.slice(1) });
    }

    await waitForTurn();

    // The weights of the plants alternate between 2 and 1.
    expect(batches[0]?.ids).toHaveLength(Math.ceil((MAX_BATCH_WEIGHT * 2) / 3));
  });

  it('accepts no plant when the queue has its maximum weight, and not after the next batch has begun', async () => {
    const { commits, submit } = createGroupCommit();
    void submit(1, MAX_QUEUE_WEIGHT - 1);
    expect(commits.canAccept).toBe(true);

    void submit(2);
    expect(commits.canAccept).toBe(false);

    await waitForTurn();
    expect(commits.canAccept).toBe(true);
  });

  it('closes after all plants are settled, even if a batch never ends', async () => {
    const { commits, submit } = createGroupCommit();
    const first = submit(1);
    await waitForTurn();
    const plants = Promise.allSettled([first, submit(2)]);
    const closing = commits.close();
    await waitForTurn();
    advanceClock(COMMIT_TIMEOUT_MS);

    expect(commits.canAccept).toBe(false);
    await closing;
    await commits.close();
    expect((await plants).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  it('accepts no plant when plants would wait too long by the moving average of recent batches', async () => {
    const { commits, submit, commitOne } = createGroupCommit();
    await commitOne(2000);
    await commitOne(1000);

    // The average is 500 ms, then 500 + (1000 - 500) / 4 ms. So 1.6 full batches take one second.
    while (commits.canAccept) void submit(2, MAX_BATCH_WEIGHT / 4);

    expect(commits.queueLength).toBe(7);
  });

  it('reports an unknown outcome when a batch times out, and accepts no plant until it ends', async () => {
    const { commits, batches, submit } = createGroupCommit();
    const timedOut = submit(1);
    await waitForTurn();
    const queued = submit(2);

    advanceClock(COMMIT_TIMEOUT_MS - 1);
    expect(commits.canAccept).toBe(true);
    advanceClock(1);

    await expect(timedOut).rejects.toThrow(OutcomeUnknownError);
    await expect(queued).rejects.toThrow(UnavailableError);
    expect(commits.canAccept).toBe(false);
    batches[0]?.succeed();
    await waitForTurn();
    expect(commits.canAccept).toBe(true);
    const next = submit(4);
    await waitForTurn();
    batches[1]?.succeed();
    expect(await next).toBe('created');
  });

  it('begins batches while others are in progress, up to the maximum of the store', async () => {
    const { commits, batches, submit } = createGroupCommit(2);
    const plants = [submit(1)];
    await waitForTurn();
    plants.push(submit(2));
    await waitForTurn();
    plants.push(submit(3));
    await waitForTurn();
    const settled = Promise.allSettled(plants);
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2]]);

    const closing = commits.close();
    batches[1]?.succeed();
    await waitForTurn();
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2], [3]]);
    batches[2]?.fail(new StoreFailure('notStored', 'broken'));
    await waitForTurn();
    batches[0]?.succeed();

    expect((await settled).map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
    ]);
    await closing;
  });

  it('keeps only the place of a batch that has timed out', async () => {
    const { commits, batches, submit } = createGroupCommit(2);
    const timedOut = submit(1);
    await waitForTurn();
    advanceClock(COMMIT_TIMEOUT_MS);
    await expect(timedOut).rejects.toThrow(OutcomeUnknownError);
    expect(commits.stalledSince).toBeUndefined();

    const next = submit(2);
    await waitForTurn();
    batches[1]?.succeed();

    expect(await next).toBe('created');
    const last = submit(3);
    await waitForTurn();
    const queued = submit(4);
    advanceClock(COMMIT_TIMEOUT_MS);
    await expect(last).rejects.toThrow(OutcomeUnknownError);
    await expect(queued).rejects.toThrow(UnavailableError);
    expect(commits.canAccept).toBe(false);
    expect(commits.stalledSince).toBe(COMMIT_TIMEOUT_MS);
  });

  it('rejects only the overdue plants when a batch ends', async () => {
    const { batches, submit } = createGroupCommit();
    const [first, second, overdue] = [1, 2, 3].map((id) => submit(id, MAX_BATCH_WEIGHT));
    await waitForTurn();
    advanceClock(500);
    batches[0]?.succeed();
    await first;
    await waitForTurn();
    const last = submit(4);

    advanceClock(COMMIT_TIMEOUT_MS - 1);
    batches[1]?.succeed();

    expect(await second).toBe('created');
    await expect(overdue).rejects.toThrow(UnavailableError);
    await waitForTurn();
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2], [4]]);
    batches[2]?.succeed();
    expect(await last).toBe('created');
  });

  it('reports the size and duration of each batch, including failed ones', async () => {
    const { batches, ended, submit } = createGroupCommit();

    const one = submit(1);
    await waitForTurn();
    advanceClock(7);
    const others = [submit(2), submit(3)];
    batches[0]?.succeed();
    await one;
    await waitForTurn();
    const failure = new StoreFailure('notStored', 'broken');
    batches[1]?.fail(failure);
    await Promise.allSettled(others);
    await waitForTurn();

    expect(ended).toEqual([
      { size: 1, duration: 7, failure: undefined },
      { size: 2, duration: 0, failure },
    ]);
  });

  it('tells the observers how a batch ended before its plants have their outcomes', async () => {
    const { batches, ended, submit } = createGroupCommit();
    const failed = submit(1).catch(() => ended.length);
    await waitForTurn();

    batches[0]?.fail(new StoreFailure('notStored', 'broken'));

    expect(await failed).toBe(1);
  });

  it.each<[FailureReach, FailureReach[]]>([
    ['batch', ['batch']],
    ['store', ['batch', 'store']],
    ['store', ['store', 'batch']],
    ['process', ['process', 'store', 'batch']],
    ['process', ['batch', 'store', 'process']],
  ])('reports a failure with the reach %s if plants fail with %j', async (widest, reaches) => {
    const { batches, ended, submit } = createGroupCommit();
    const failures = reaches.map((reach) => new StoreFailure('unknown', reach, { reach }));
    const plants = [submit(0), ...failures.map((_failure, at) => submit(at + 1))];
    const settled = Promise.allSettled(plants);
    await waitForTurn();

    batches[0]?.succeed(['created', ...failures]);
    await settled;

    expect(ended.map(({ failure }) => failure?.reach)).toEqual([widest]);
  });

  it('reports a failure of the store when the driver returns the wrong number of outcomes', async () => {
    const { batches, ended, submit } = createGroupCommit();
    const plants = Promise.allSettled([submit(1), submit(2)]);
    await waitForTurn();

    batches[0]?.succeed(['created']);

    const failure = new StoreFailure('unknown', 'Error: 1 results of 2 plants');
    expect(await plants).toEqual(Array(2).fill({ status: 'rejected', reason: failure }));
    expect(ended).toEqual([{ size: 2, duration: 0, failure }]);
  });

  it('commits ids that were locked apart from others, in one place, until they have another outcome', async () => {
    const { batches, submit } = createGroupCommit(3);
    const locked = new StoreFailure('locked', 'lock timeout');
    const first = [submit(1), submit(2)];
    await waitForTurn();
    batches[0]?.succeed([locked, 'created']);
    await Promise.allSettled(first);

    const retries = [submit(1), submit(3), submit(1)];
    await waitForTurn();
    retries.push(submit(1), submit(4));
    await waitForTurn();

    expect(batches.slice(1).map(({ ids }) => ids)).toEqual([[1, 1], [3], [4]]);
    batches[1]?.succeed();
    await waitForTurn();
    expect(batches.slice(4).map(({ ids }) => ids)).toEqual([[1]]);
    for (const batch of batches.slice(2)) batch.succeed();
    await Promise.all(retries);
    const last = [submit(1), submit(5)];
    await waitForTurn();
    expect(batches.slice(5).map(({ ids }) => ids)).toEqual([[1, 5]]);
    batches[5]?.succeed();
    await Promise.all(last);
  });

  it('commits an id with others again 10 seconds after it was locked', async () => {
    const { batches, submit } = createGroupCommit();
    const first = submit(1).catch(() => undefined);
    await waitForTurn();
    batches[0]?.succeed([new StoreFailure('locked', 'lock timeout')]);
    await first;
    advanceClock(COMMIT_TIMEOUT_MS);

    void submit(1);
    void submit(2);
    await waitForTurn();

    expect(batches[1]?.ids).toEqual([1, 2]);
  });

  it('is not stalled by one batch while others end, unless these are slow', async () => {
    const { commits, batches, submit } = createGroupCommit(2);
    void submit(1);
    await waitForTurn();
    for (const [duration, stalledSince] of [
      [1999, 1999],
      [1999, 3998],
      [2000, 3998],
    ] as const) {
      const other = submit(2);
      await waitForTurn();
      advanceClock(duration);
      batches.at(-1)?.succeed();
      await other;
      expect(commits.stalledSince).toBe(stalledSince);
    }
  });

  it('resolves every call of close', async () => {
    const { commits, batches, submit } = createGroupCommit();
    const plant = submit(1);
    await waitForTurn();

    const closing = [commits.close(), commits.close()];
    batches[0]?.succeed();

    await Promise.all(closing);
    expect(await plant).toBe('created');
  });
});

/** How a batch ends, and what its plants get, unless the batch has timed out. */
const RESULTS = {
  success: { outcome: 'created' },
  notStored: { outcome: 'rejected', error: new StoreFailure('notStored', 'full') },
  unknown: { outcome: 'unknown', error: new StoreFailure('unknown', 'lost') },
  final: { outcome: 'unknown', error: new StoreFailure('unknown', 'EIO', { reach: 'process' }) },
  fault: { outcome: 'unknown', error: new Error('a fault of the driver') },
  // The database rejects one row of the batch, or somebody has locked its id.
  row: { outcome: 'created' },
  locked: { outcome: 'created' },
} as const;
type Result = keyof typeof RESULTS;

const ROW_FAILURES: Partial<Record<Result, StoreFailure>> = {
  row: new StoreFailure('row', 'too long'),
  locked: new StoreFailure('locked', 'lock timeout'),
};

const toOutcome = (reason: unknown): string => {
  if (reason instanceof UnavailableError) return 'rejected';
  if (reason instanceof OutcomeUnknownError) return 'unknown';
  if (!(reason instanceof StoreFailure)) return String(reason);
  return reason.kind === 'notStored' ? 'rejected' : reason.kind;
};

interface Settled {
  actual: string;
  expected: string;
  settledAfter: number;
}

/** Runs a schedule. Returns what happened to each plant and batch, and what follows from the results of the batches. */
async function run(maxBatches: number, schedule: readonly Step[]) {
  const { commits, batches, ended, submit } = createGroupCommit(maxBatches);
  const plants: Settled[] = [];
  const expectedEnds: { size: number; reason: string | undefined }[] = [];
  const endedBatches = new Set<ManualBatch>();
  const inProgress = () => batches.filter((batch) => !endedBatches.has(batch));
  const expectOutcome = (id: number | undefined, outcome: string): void => {
    const plant = plants[id ?? -1];
    // If the batch has timed out, its plants have an outcome already.
    if (plant) plant.expected = plant.actual === 'unknown' ? 'unknown' : outcome;
  };
  const end = async (result: Result, place = 0): Promise<void> => {
    expect(inProgress().length).toBeLessThanOrEqual(maxBatches);
    const batch = inProgress()[place % (inProgress().length || 1)];
    if (batch === undefined) return;
    endedBatches.add(batch);
    const { outcome, error } = { error: undefined, ...RESULTS[result] };
    const rowFailure = ROW_FAILURES[result];
    for (const id of batch.ids) expectOutcome(id, outcome);
    if (error) {
      batch.fail(error);
    } else if (rowFailure) {
      const created = batch.ids.slice(1).map((): InsertOutcome => 'created');
      expectOutcome(batch.ids[0], rowFailure.kind);
      batch.succeed([rowFailure, ...created]);
    } else {
      batch.succeed();
    }
    const failure = rowFailure ?? error;
    const reason = failure instanceof StoreFailure ? failure.message : failure && String(failure);
    expectedEnds.push({ size: batch.ids.length, reason });
    await waitForTurn();
  };

  for (const step of schedule) {
    if ('end' in step) await end(step.end, step.place);
    else if ('steps' in step) {
      for (let passed = 0; passed < step.steps; passed++) {
        advanceClock(COMMIT_TIMEOUT_MS / 4);
        await waitForTurn();
      }
    } else if (commits.canAccept) {
      const since = performance.now();
      const plant = { actual: 'none', expected: 'rejected', settledAfter: Infinity };
      const settle = (outcome: string): void => {
        Object.assign(plant, { actual: outcome, settledAfter: performance.now() - since });
      };
      submit(plants.push(plant) - 1, step.weight).then(settle, (reason: unknown) => {
        settle(toOutcome(reason));
      });
    }
    await waitForTurn();
  }
  const closing = commits.close();
  while (inProgress().length > 0) await end('success');
  await closing;
  await waitForTurn();
  const ends = ended.map(({ size, failure }) => ({ size, reason: failure?.message }));
  return { plants, ends, expectedEnds };
}

type Step = { weight: number } | { end: Result; place: number } | { steps: number };
const weight = fc.constantFrom(1, 1, 256, 512, MAX_BATCH_WEIGHT, MAX_QUEUE_WEIGHT / 2);
const results = Object.keys(RESULTS) as Result[];
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ weight }) },
  {
    weight: 3,
    arbitrary: fc.record({
      end: fc.constantFrom<Result>('success', 'success', ...results),
      place: fc.nat(3),
    }),
  },
  { weight: 2, arbitrary: fc.record({ steps: fc.constantFrom(1, 3, 4, 5) }) },
);

it('GroupCommit settles each plant once and in time, and reports each end of a batch once, on any schedule', async () => {
  const schedules = fc.array<Step>(step, { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 4 }), schedules, async (maxBatches, schedule) => {
      const { plants, ends, expectedEnds } = await run(maxBatches, schedule);

      expect(plants.map(({ actual }) => actual)).toEqual(plants.map(({ expected }) => expected));
      expect(plants.filter((plant) => plant.settledAfter > 2 * COMMIT_TIMEOUT_MS)).toEqual([]);
      expect(ends).toEqual(expectedEnds);
    }),
    { numRuns: 300, verbose: true },
  );
});
