import { pass, releaseClock, stopClock } from '../../../test/support/clock';
import { makeGroupCommit, turn } from '../../../test/support/group-commit';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import { batchChannel, type CommitEvent, commitChannel } from '../plants.channels';

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

  it('estimates how long the queue takes, by the moving average of recent batches', async () => {
    const { commits, batches } = makeGroupCommit({ batchWeight: 2, queueTime: 2000 });
    for (const duration of [4000, 2000]) {
      const item = commits.submit(1);
      await turn();
      pass(duration);
      batches.at(-1)?.succeed();
      await item;
    }

    // First 1000 ms, then 1000 + (2000 - 1000) / 4: 3.2 items of weight 1 take 2000 ms.
    while (!commits.isFull) void commits.submit(2);

    expect(commits.queueLength).toBe(4);
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

    const error: unknown = await first.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(expected);
    expect(error).toHaveProperty('cause', fault === error ? undefined : fault);
    await turn();
    batches[1]?.succeed();
    expect(await second).toBe(20);
  });
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

  it('waits for the batch under way when it closes', async () => {
    const { commits, batches } = makeGroupCommit();
    const outcome = commits.submit(1);
    await turn();
    let isClosed = false;

    const closing = commits.close().then(() => {
      isClosed = true;
    });
    await turn();

    expect(isClosed).toBe(false);
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
