import { pass, releaseClock, stopClock } from '../../../test/support/clock';
import {
  BATCH_WEIGHT,
  DEADLINE,
  makeGroupCommit,
  QUEUE_WEIGHT,
  turn,
} from '../../../test/support/group-commit';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import { batchChannel, commitChannel } from '../plants.channels';

describe('GroupCommit', () => {
  beforeEach(stopClock);
  afterEach(releaseClock);

  it('commits one plant at once, and those that come meanwhile together', async () => {
    const { commits, batches, submit } = makeGroupCommit();

    const outcomes = [submit(1)];
    await turn();
    outcomes.push(submit(2), submit(3), submit(4), submit(5));
    await turn();

    expect(batches).toHaveLength(1);
    expect(commits.queueLength).toBe(4);
    batches[0]?.succeed();
    await turn();
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2, 3, 4, 5]]);
    expect(commits.queueLength).toBe(0);
    batches[1]?.succeed(['taken', 'replayed', 'keyReused', new PlantStoreError('internal')]);
    await expect(outcomes.pop()).rejects.toThrow(PlantStoreError);
    expect(await Promise.all(outcomes)).toEqual(['created', 'taken', 'replayed', 'keyReused']);
  });

  it('gathers the plants of one turn of the event loop', async () => {
    const { batches, submit } = makeGroupCommit();

    void submit(1);
    await Promise.resolve();
    void submit(2);
    await turn();

    expect(batches.map(({ ids }) => ids)).toEqual([[1, 2]]);
  });

  it('takes plants into a batch up to its weight, the last of them whole', async () => {
    const { batches, submit } = makeGroupCommit();
    [BATCH_WEIGHT - 1, BATCH_WEIGHT, 1].forEach((weight, id) => void submit(id, weight));

    await turn();

    expect(batches[0]?.ids).toEqual([0, 1]);
  });

  it('weighs name and tag together, and 4095 characters nothing', async () => {
    const { commits, batches } = makeGroupCommit();
    const half = 'x'.repeat(2048);
    for (let id = 0n; id < BATCH_WEIGHT; id++) {
      void commits.submit({ id, name: half, tag: id % 2n === 0n ? half : half.slice(1) });
    }

    await turn();

    // 2 and 1 by turns.
    expect(batches[0]?.ids).toHaveLength(Math.ceil((BATCH_WEIGHT * 2) / 3));
  });

  it('refuses plants at once while the queue is full, and accepts plants afterwards', async () => {
    const { batches, submit } = makeGroupCommit();
    const accepted = [submit(1, QUEUE_WEIGHT - 1), submit(2)];

    await expect(submit(3)).rejects.toThrow(UnavailableError);

    await turn();
    accepted.push(submit(4));
    batches[0]?.succeed();
    await turn();
    batches[1]?.succeed();
    expect(await Promise.all(accepted)).toEqual(['created', 'created', 'created']);
  });

  it('refuses plants that would wait too long, by the moving average of recent batches', async () => {
    const { commits, submit, commitOne } = makeGroupCommit();
    await commitOne(2000);
    await commitOne(1000);

    // First 500 ms, then 500 + (1000 - 500) / 4: 1.6 batches take a second.
    while (!commits.isFull) void submit(2, BATCH_WEIGHT / 4);

    expect(commits.queueLength).toBe(7);
    await expect(submit(3)).rejects.toThrow(UnavailableError);
  });

  it.each([
    ['refused', new UnavailableError(), UnavailableError],
    ['of unknown outcome', new Error('unexpected'), OutcomeUnknownError],
  ])('fails the plants of a batch that is %s, and nothing else', async (_what, fault, expected) => {
    const { batches, submit } = makeGroupCommit();
    const first = submit(1);
    await turn();
    const second = submit(2);

    batches[0]?.fail(fault);

    const error: unknown = await first.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(expected);
    expect(error).toHaveProperty('cause', fault === error ? undefined : fault);
    await turn();
    batches[1]?.succeed();
    expect(await second).toBe('created');
  });

  it('reports an unknown outcome when a batch times out, and refuses plants until it ends', async () => {
    const { commits, batches, submit } = makeGroupCommit();
    const timedOut = submit(1);
    await turn();
    const queued = submit(2);

    pass(DEADLINE - 1);
    expect(commits.isFull).toBe(false);
    pass(1);

    await expect(timedOut).rejects.toThrow(OutcomeUnknownError);
    await expect(queued).rejects.toThrow(UnavailableError);
    await expect(submit(3)).rejects.toThrow(UnavailableError);
    batches[0]?.succeed();
    await turn();
    const next = submit(4);
    await turn();
    batches[1]?.succeed();
    expect(await next).toBe('created');
  });

  it('refuses the plants that are overdue when a batch ends, and no others', async () => {
    const { batches, submit } = makeGroupCommit();
    const [first, second, overdue] = [1, 2, 3].map((id) => submit(id, BATCH_WEIGHT));
    await turn();
    pass(500);
    batches[0]?.succeed();
    await first;
    await turn();
    const last = submit(4);

    pass(DEADLINE - 1);
    batches[1]?.succeed();

    expect(await second).toBe('created');
    await expect(overdue).rejects.toThrow(
      new UnavailableError({
        cause: new Error('overloaded: the plant has waited too long for its batch'),
      }),
    );
    await turn();
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2], [4]]);
    batches[2]?.succeed();
    expect(await last).toBe('created');
  });

  it('says since when the oldest plant without an answer has waited, and at its end how long', async () => {
    const { commits, batches, ends, submit } = makeGroupCommit();
    expect(commits.waitingSince).toBeUndefined();
    const start = performance.now();

    void submit(1);
    pass(5);
    expect(commits.waitingSince).toBe(start);
    await turn();
    const refused = submit(2);
    pass(7);
    expect(commits.waitingSince).toBe(start);
    batches[0]?.succeed();
    await turn();

    expect(commits.waitingSince).toBe(start + 5);
    batches[1]?.fail(new UnavailableError());
    await expect(refused).rejects.toThrow(UnavailableError);
    expect(commits.waitingSince).toBeUndefined();
    expect(ends).toEqual([12, 7]);
  });

  it('publishes each batch, and the batch size and the outcome or error of each plant', async () => {
    const { batches, submit } = makeGroupCommit();
    const ended: unknown[] = [];
    const listen = (event: unknown) => ended.push({ ...(event as object) });
    const listeners = { asyncEnd: listen };
    batchChannel.subscribe(listen);
    commitChannel.subscribe(listeners);

    const one = submit(1);
    await turn();
    pass(7);
    const others = [submit(2), submit(3)];
    batches[0]?.succeed();
    await one;
    await turn();
    batches[1]?.fail(new UnavailableError());
    await Promise.allSettled(others);
    commitChannel.unsubscribe(listeners);
    batchChannel.unsubscribe(listen);

    const failed = { batchSize: 2, error: expect.any(UnavailableError) as Error };
    expect(ended).toEqual([
      { items: 1, duration: 7 },
      { batchSize: 1, result: 'created' },
      { items: 2, duration: 0 },
      failed,
      failed,
    ]);
  });
});
