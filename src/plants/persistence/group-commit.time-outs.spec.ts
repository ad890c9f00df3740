import { pass, releaseClock, stopClock } from '../../../test/support/clock';
import { DEADLINE, makeGroupCommit, turn } from '../../../test/support/group-commit';
import { OutcomeUnknownError, UnavailableError } from '../errors/errors';

describe('GroupCommit', () => {
  beforeEach(stopClock);
  afterEach(releaseClock);

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
    'refuses items that are overdue when a batch %s, and no others',
    async (_what, time, succeeds) => {
      const { commits, batches } = makeGroupCommit({ batchWeight: 1, timedOutLimit: 2 });
      const [first, second, overdue] = [1, 2, 3].map((item) => commits.submit(item));
      await turn();
      pass(9000);
      batches[0]?.succeed();
      await first;
      await turn();
      const last = commits.submit(4);

      pass(time);
      if (succeeds) batches[1]?.succeed();

      await Promise.allSettled([second]);
      const error: unknown = await overdue?.catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(UnavailableError);
      expect(error).toHaveProperty(
        'cause.message',
        'overloaded: the plant has waited too long for its batch',
      );
      await turn();
      expect(batches.map(({ items }) => items)).toEqual([[1], [2], [4]]);
      batches[2]?.succeed();
      expect(await last).toBe(40);
    },
  );

  it('commits nothing once the item that a batch was scheduled for is refused', async () => {
    const { commits, batches } = makeGroupCommit({ timedOutLimit: 2 });
    const first = commits.submit(1);
    await turn();
    const second = commits.submit(2);
    // Scheduled when the first batch times out, and refused when it ends, before the next turn.
    pass(DEADLINE);
    pass(1);
    batches[0]?.succeed();
    await expect(first).rejects.toThrow(OutcomeUnknownError);
    await expect(second).rejects.toThrow(UnavailableError);

    await commits.close();
    await turn();

    expect(batches.map(({ items }) => items)).toEqual([[1]]);
  });

  describe('is late', () => {
    it('when a batch has timed out', async () => {
      const { commits } = makeGroupCommit({ timedOutLimit: 2 });
      const item = commits.submit(1);
      await turn();

      pass(DEADLINE);

      await expect(item).rejects.toThrow(OutcomeUnknownError);
      expect(commits.isStuck).toBe(false);
      expect(commits.isLate).toBe(true);
    });

    it('once an item of the batch under way has waited for two seconds', async () => {
      const { commits, batches } = makeGroupCommit();
      pass(1);
      const item = commits.submit(1);
      await turn();

      pass(1999);
      expect(commits.isLate).toBe(false);
      pass(1);

      expect(commits.isLate).toBe(true);
      batches[0]?.succeed();
      await item;
    });

    it('once an item has waited for two seconds for its batch to begin', () => {
      const { commits } = makeGroupCommit();
      void commits.submit(1);

      pass(1999);
      expect(commits.isLate).toBe(false);
      pass(1);

      expect(commits.isLate).toBe(true);
    });

    /** Commits one item, which takes so many milliseconds. */
    async function commitOne(
      { commits, batches }: ReturnType<typeof makeGroupCommit>,
      time: number,
    ): Promise<void> {
      const item = commits.submit(1);
      await turn();
      pass(time);
      batches.at(-1)?.succeed();
      await item;
    }

    it('without a break while each item takes long, until one is answered in time', async () => {
      const trial = makeGroupCommit();
      await commitOne(trial, 6000);
      expect(trial.commits.isLate).toBe(true);

      await commitOne(trial, 1999);

      expect(trial.commits.isLate).toBe(false);
    });

    it('for ten seconds after an item was answered late, if no other comes', async () => {
      const { commits, ...trial } = makeGroupCommit();
      await commitOne({ commits, ...trial }, 2000);

      pass(DEADLINE - 1);
      expect(commits.isLate).toBe(true);
      pass(1);

      expect(commits.isLate).toBe(false);
    });
  });
});
