import fc from 'fast-check';
import { advanceClock, restoreClock, stopClock, waitForTurn } from '../../../test/support/clock';
import { useLog } from '../../../test/support/log';
import { UnavailableError } from '../errors/errors';
import type { InsertOutcome } from '../plants.repository';
import { DatabasePlantsRepository } from './database-plants.repository';
import { type InsertResult, type StoreDriver, StoreFailure } from './store-driver';

const SLOW_COMMIT_MS = 2000;
const COMMIT_TIMEOUT_MS = 10_000;
/** How often the repository checks the store. */
const CHECK_INTERVAL_MS = 500;
/** How long a store that works again takes to become ready. */
const RECOVERY_MS = 1000;

/** A database whose probes succeed, and whose batches are ended by the test. */
class ManualDriver implements StoreDriver {
  readonly name = 'the store';
  readonly maxBatches = 1;
  readonly batches: PromiseWithResolvers<InsertResult[]>[] = [];
  probeCount = 0;
  private size = 0;

  open = jest.fn(() => Promise.resolve());
  close = jest.fn(() => Promise.resolve());
  read = (): Promise<[]> => Promise.resolve([]);

  probe(): Promise<void> {
    this.probeCount++;
    return Promise.resolve();
  }

  commit(batch: readonly unknown[]): Promise<InsertResult[]> {
    this.size = batch.length;
    this.batches.push(Promise.withResolvers());
    return this.batches.at(-1)?.promise ?? Promise.reject(new Error());
  }

  /** Ends the batch in progress. Returns whether there was one. */
  async end(failure?: StoreFailure): Promise<boolean> {
    const batch = this.batches.pop();
    if (failure?.kind === 'row') batch?.resolve(Array<StoreFailure>(this.size).fill(failure));
    else if (failure) batch?.reject(failure);
    else batch?.resolve(Array<InsertOutcome>(this.size).fill('created'));
    await waitForTurn();
    return batch !== undefined;
  }
}

async function passTime(milliseconds: number): Promise<void> {
  advanceClock(milliseconds);
  await waitForTurn();
}

describe('DatabasePlantsRepository', () => {
  const { lines } = useLog();
  let driver: ManualDriver;
  let repository: DatabasePlantsRepository;
  beforeEach(async () => {
    stopClock();
    driver = new ManualDriver();
    repository = new DatabasePlantsRepository(driver);
    await repository.start();
  });
  afterEach(restoreClock);

  /** Inserts a plant. Resolves to its outcome or its error. */
  async function insert(): Promise<{ outcome: Promise<unknown> }> {
    const outcome = repository.insert({ id: 1n, name: 'Fern' }).catch((error: unknown) => error);
    await waitForTurn();
    return { outcome };
  }

  it('names the slow commit, and nothing else, as the failure when a batch times out', async () => {
    const timedOut = await insert();
    await passTime(SLOW_COMMIT_MS);
    expect(repository.isReady()).toBe(false);
    await passTime(COMMIT_TIMEOUT_MS);

    expect(String(await timedOut.outcome)).toContain('did not confirm the commit');

    const cause = repository.currentFailure();
    expect(lines).toEqual([`error ${cause?.message}`]);
    expect(lines).toEqual([expect.stringContaining('a commit takes 2 seconds or more')]);
    // So the request is rejected with that cause, and not because the queue is full.
    expect(repository.canAccept()).toBe(true);
    await expect(repository.insert({ id: 2n, name: 'Fern' })).rejects.toMatchObject({ cause });
  });

  it.each([
    ['store', false],
    ['process', true],
  ] as const)(
    'learns of a failure with the reach %s after its batch has timed out',
    async (reach, isFinal) => {
      const failure = new StoreFailure('unknown', 'EIO', { reach });
      let restartReason: Error | undefined;
      void repository.restartNeeded.then((reason) => {
        restartReason = reason;
      });
      await insert();
      await passTime(COMMIT_TIMEOUT_MS);

      await driver.end(failure);

      expect(repository.currentFailure()).toBe(failure);
      expect(lines.at(-1)).toBe('error EIO');
      expect(restartReason).toBe(isFinal ? failure : undefined);
      await passTime(RECOVERY_MS);
      expect(repository.isReady()).toBe(!isFinal);
    },
  );

  it('waits for the driver to close, also if a batch never ends', async () => {
    await insert();
    const closing = Promise.withResolvers<undefined>();
    driver.close.mockReturnValue(closing.promise);
    let isStopped = false;
    const stopping = repository.onApplicationShutdown().then(() => {
      isStopped = true;
    });
    await passTime(COMMIT_TIMEOUT_MS);

    expect(driver.close).toHaveBeenCalled();
    expect(isStopped).toBe(false);
    closing.resolve(undefined);
    await stopping;
  });

  it('leaves no timer after a start that fails', async () => {
    const timers = jest.getTimerCount();
    const failing = new DatabasePlantsRepository(driver);
    driver.open.mockRejectedValue(new Error('not a directory'));

    await expect(failing.start()).rejects.toThrow('not a directory');

    expect(jest.getTimerCount()).toBe(timers);
  });

  it('stays ready after a failure with the reach batch if a probe succeeds', async () => {
    await insert();
    await driver.end(new StoreFailure('unknown', 'lost', { reach: 'batch' }));

    expect(driver.probeCount).toBe(1);
    expect(repository.isReady()).toBe(true);
    expect(lines).toEqual([]);
  });

  it.each(['row', 'locked'] as const)(
    'probes once, at the next check, after plants with the failure %s',
    async (kind) => {
      for (let count = 0; count < 3; count++) {
        await insert();
        await driver.end(new StoreFailure(kind, 'rejected'));
      }
      expect(driver.probeCount).toBe(0);

      await passTime(CHECK_INTERVAL_MS);
      expect(driver.probeCount).toBe(1);

      await passTime(CHECK_INTERVAL_MS);
      expect(driver.probeCount).toBe(1);
    },
  );
});

const FAILURES = {
  none: undefined,
  row: new StoreFailure('row', 'too long'),
  batch: new StoreFailure('unknown', 'session lost', { reach: 'batch' }),
  store: new StoreFailure('notStored', 'disk full'),
  process: new StoreFailure('unknown', 'EIO', { reach: 'process' }),
  // Of a request that was not sent after a final failure.
  unsent: new StoreFailure('notStored', 'EIO before', { reach: 'process' }),
} as const;

type Step = { insert: number } | { end: keyof typeof FAILURES } | { passMs: number };

/** Runs a schedule, and checks after each step what the repository knows of the store. */
async function run(schedule: readonly Step[]): Promise<void> {
  const driver = new ManualDriver();
  const repository = new DatabasePlantsRepository(driver);
  await repository.start();
  let restartReason: Error | undefined;
  void repository.restartNeeded.then((reason) => {
    restartReason = reason;
  });
  let finalFailure: StoreFailure | undefined;

  for (const step of schedule) {
    if ('insert' in step) {
      const cause = repository.currentFailure();
      const outcome = repository.insert({ id: 1n, name: 'Fern' }).catch((error: unknown) => error);
      if (cause) expect(await outcome).toEqual(new UnavailableError({ cause }));
      await waitForTurn();
    } else if ('end' in step) {
      const failure = FAILURES[step.end];
      if (await driver.end(failure)) {
        if (failure?.reach === 'process') finalFailure ??= failure;
        if (failure?.reach === 'store' && !finalFailure) {
          expect(repository.currentFailure()).toBe(failure);
        }
      }
    } else {
      await passTime(step.passMs);
    }
    expect(restartReason).toBe(finalFailure);
    if (finalFailure) expect(repository.currentFailure()).toBe(finalFailure);
  }

  while (await driver.end());
  await passTime(RECOVERY_MS);
  expect(repository.currentFailure()).toBe(finalFailure);
  await repository.onApplicationShutdown();
}

describe('DatabasePlantsRepository on any schedule', () => {
  useLog();
  beforeEach(stopClock);
  afterEach(restoreClock);

  it('knows each failure of the store, before and after a time-out, and recovers unless it is final', async () => {
    const step = fc.oneof<fc.Arbitrary<Step>[]>(
      fc.record({ insert: fc.constant(1) }),
      fc.record({ end: fc.constantFrom(...(Object.keys(FAILURES) as (keyof typeof FAILURES)[])) }),
      fc.record({ passMs: fc.constantFrom(500, SLOW_COMMIT_MS, COMMIT_TIMEOUT_MS) }),
    );
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 20 }), run), {
      numRuns: 300,
      verbose: true,
      examples: [[[{ insert: 1 }, { passMs: COMMIT_TIMEOUT_MS }, { end: 'process' }]]],
    });
  });
});
