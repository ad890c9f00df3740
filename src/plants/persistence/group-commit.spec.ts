import { setImmediate } from 'node:timers/promises';
import { pass, releaseClock, stopClock } from '../../../test/support/clock';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../errors';
import { batchChannel, type CommitEvent, commitChannel } from '../plants.channels';
import { GroupCommit, type GroupCommitOptions } from './group-commit';

/** Milliseconds after which a batch has timed out. */
const DEADLINE = 10_000;

/** A group commit over a store whose batches the test settles by hand. */
function makeGroupCommit(options: Partial<GroupCommitOptions<number, number>> = {}) {
  const batches: {
    items: readonly number[];
    succeed: (outcomes?: (number | PlantStoreError)[]) => void;
    fail: (error: Error) => void;
  }[] = [];
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
async function turn(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

describe('GroupCommit', () => {
  beforeEach(stopClock);
  afterEach(releaseClock);

  it('commits one item at once, and those that come meanwhile together', async () => {
    const { commits, batches } = makeGroupCommit();

    const outcomes = [commits.submit(1)];
    await turn();
    outcomes.push(commits.submit(2), commits.submit(3));
    await turn();

    expect(batches).toHaveLength(1);
    expect(commits.queueLength).toBe(2);
    batches[0]?.succeed();
    await turn();
    expect(batches.map(({ items }) => items)).toEqual([[1], [2, 3]]);
    expect(commits.queueLength).toBe(0);
    batches[1]?.succeed([20, new PlantStoreError('internal')]);
    await expect(outcomes.pop()).rejects.toThrow(PlantStoreError);
    expect(await Promise.all(outcomes)).toEqual([10, 20]);
  });

  it('fills a batch to its weight', async () => {
    const { commits, batches } = makeGroupCommit({ batchWeight: 5, weigh: (item) => item });

    const outcomes = [3, 3, 3].map((item) => commits.submit(item));
    await turn();

    expect(batches[0]?.items).toEqual([3, 3]);
    batches[0]?.succeed();
    await turn();
    batches[1]?.succeed();
    expect(await Promise.all(outcomes)).toEqual([30, 30, 30]);
  });

  it('refuses items at once while the queue is full, and accepts items afterwards', async () => {
    const { commits, batches } = makeGroupCommit({ queueWeight: 2 });
    const accepted = [commits.submit(1), commits.submit(2)];

    await expect(commits.submit(3)).rejects.toThrow(UnavailableError);

    await turn();
    accepted.push(commits.submit(4));
    batches[0]?.succeed();
    await turn();
    batches[1]?.succeed();
    expect(await Promise.all(accepted)).toEqual([10, 20, 40]);
  });

  it('keeps the queue short when batches take long', async () => {
    const { commits, batches } = makeGroupCommit({ batchWeight: 1, queueTime: 2000 });
    const slow = commits.submit(1);
    await turn();
    // The moving average is now 1000 ms, a quarter of the duration of the first batch.
    pass(4000);
    batches[0]?.succeed();
    await slow;

    const accepted: Promise<number>[] = [];
    while (!commits.isFull) accepted.push(commits.submit(2));

    expect(commits.queueLength).toBe(2);
    await expect(commits.submit(3)).rejects.toThrow(UnavailableError);
    for (let at = 1; at <= accepted.length; at++) {
      await turn();
      batches[at]?.succeed();
    }
    expect(await Promise.all(accepted)).toEqual(accepted.map(() => 20));
  });

  it.each([
    ['refused', new UnavailableError(), UnavailableError],
    ['of unknown outcome', new Error('unexpected'), OutcomeUnknownError],
  ])('fails the items of a batch that is %s, and nothing else', async (_what, fault, expected) => {
    const { commits, batches } = makeGroupCommit();
    const first = commits.submit(1);
    await turn();
    const second = commits.submit(2);

    batches[0]?.fail(fault);

    await expect(first).rejects.toThrow(expected);
    await turn();
    batches[1]?.succeed();
    expect(await second).toBe(20);
  });

  it('reports an unknown outcome when a batch times out, and refuses items until it ends', async () => {
    const { commits, batches } = makeGroupCommit();
    const timedOut = commits.submit(1);
    await turn();
    const queued = commits.submit(2);

    pass(DEADLINE - 1);
    expect(commits.isStuck).toBe(false);
    pass(1);

    await expect(timedOut).rejects.toThrow(OutcomeUnknownError);
    await expect(queued).rejects.toThrow(UnavailableError);
    expect(commits.isStuck).toBe(true);
    await expect(commits.submit(3)).rejects.toThrow(UnavailableError);

    batches[0]?.succeed();
    await turn();
    const next = commits.submit(4);
    await turn();
    batches[1]?.succeed();
    expect(await next).toBe(40);
  });

  it('starts another batch beside one that has timed out, up to a limit', async () => {
    const { commits, batches } = makeGroupCommit({ timedOutLimit: 2 });
    const timedOut = commits.submit(1);
    await turn();
    const queued = commits.submit(2);
    await turn();
    expect(batches).toHaveLength(1);

    pass(DEADLINE);
    await expect(timedOut).rejects.toThrow(OutcomeUnknownError);
    await turn();
    batches[1]?.succeed();
    expect(await queued).toBe(20);

    const alsoTimedOut = commits.submit(3);
    await turn();
    pass(DEADLINE);
    await expect(alsoTimedOut).rejects.toThrow(OutcomeUnknownError);
    await expect(commits.submit(4)).rejects.toThrow(UnavailableError);
    batches[0]?.succeed();
    batches[2]?.succeed();
  });

  it.each([
    ['ends', 9000, true],
    ['times out', DEADLINE, false],
  ])(
    'is late while items wait, and refuses those that are overdue when a batch %s',
    async (_what, time, succeeds) => {
      const { commits, batches } = makeGroupCommit({ batchWeight: 1, timedOutLimit: 2 });
      const [first, second, overdue] = [1, 2, 3].map((item) => commits.submit(item));
      await turn();
      pass(1999);
      expect(commits.isLate).toBe(false);
      pass(1);
      expect(commits.isLate).toBe(true);
      pass(7000);
      batches[0]?.succeed();
      await first;
      await turn();
      const last = commits.submit(4);

      pass(time);
      if (succeeds) batches[1]?.succeed();

      await Promise.allSettled([second]);
      await expect(overdue).rejects.toThrow(UnavailableError);
      await turn();
      expect(batches.map(({ items }) => items)).toEqual([[1], [2], [4]]);
      expect(commits.isLate).toBe(false);
      batches[2]?.succeed();
      expect(await last).toBe(40);
    },
  );

  it('closes once all earlier items are settled', async () => {
    const { commits, batches } = makeGroupCommit();
    const outcome = commits.submit(1);
    let closed = false;
    const closing = commits.close().then(() => {
      closed = true;
    });

    await turn();
    expect(closed).toBe(false);
    await expect(commits.submit(2)).rejects.toThrow(UnavailableError);
    batches[0]?.succeed();
    await closing;

    expect(await outcome).toBe(10);
  });

  it('publishes the start, the batch size and the outcome or error of each item', async () => {
    const { commits, batches } = makeGroupCommit();
    const batchSizes: unknown[] = [];
    const listen = (event: unknown) => batchSizes.push(event);
    batchChannel.subscribe(listen);
    const begun: CommitEvent[] = [];
    const ended: CommitEvent[] = [];
    const listeners = {
      start: (event: CommitEvent) => void begun.push(event),
      asyncEnd: (event: CommitEvent) => void ended.push({ ...event }),
    };
    commitChannel.subscribe(listeners);

    const one = commits.submit(1);
    await turn();
    pass(7);
    const others = [commits.submit(2), commits.submit(3)];
    batches[0]?.succeed();
    await one;
    await turn();
    batches[1]?.fail(new UnavailableError());
    await Promise.allSettled(others);
    commitChannel.unsubscribe(listeners);
    batchChannel.unsubscribe(listen);

    expect(batchSizes).toEqual([
      { items: 1, duration: 7 },
      { items: 2, duration: 0 },
    ]);
    expect(begun).toHaveLength(3);
    expect(ended).toEqual([
      { batchSize: 1, result: 10 },
      ...Array<unknown>(2).fill({ batchSize: 2, error: expect.any(UnavailableError) as Error }),
    ]);
  });
});
