import { pass, releaseClock, stopClock } from '../../../test/support/clock';
import { makeGroupCommit, turn } from '../../../test/support/group-commit';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import { batchChannel, commitChannel } from '../plants.channels';

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

  it('refuses items that would wait too long, by the moving average of recent batches', async () => {
    const { commits, commitOne } = makeGroupCommit({ batchWeight: 2, queueTime: 2000 });
    await commitOne(4000);
    await commitOne(2000);

    // First 1000 ms, then 1000 + (2000 - 1000) / 4: 3.2 items of weight 1 take 2000 ms.
    while (!commits.isFull) void commits.submit(2);

    expect(commits.queueLength).toBe(4);
    await expect(commits.submit(3)).rejects.toThrow(UnavailableError);
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

  it('publishes each batch, and the batch size and the outcome or error of each item', async () => {
    const { commits, batches } = makeGroupCommit();
    const ended: unknown[] = [];
    const listen = (event: unknown) => ended.push({ ...(event as object) });
    const listeners = { asyncEnd: listen };
    batchChannel.subscribe(listen);
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

    const failed = { batchSize: 2, error: expect.any(UnavailableError) as Error };
    expect(ended).toEqual([
      { batchSize: 1, result: 10 },
      { items: 1, duration: 7 },
      { items: 2, duration: 0 },
      failed,
      failed,
    ]);
  });
});
