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
    expect(commits.isFull).toBe(false);
    pass(1);

    await expect(timedOut).rejects.toThrow(OutcomeUnknownError);
    await expect(queued).rejects.toThrow(UnavailableError);
    await expect(commits.submit(3)).rejects.toThrow(UnavailableError);
    batches[0]?.succeed();
    await turn();
    const next = commits.submit(4);
    await turn();
    batches[1]?.succeed();
    expect(await next).toBe(40);
  });

  it('refuses the items that are overdue when a batch ends, and no others', async () => {
    const { commits, batches } = makeGroupCommit({ batchWeight: 1 });
    const [first, second, overdue] = [1, 2, 3].map((item) => commits.submit(item));
    await turn();
    pass(1000);
    batches[0]?.succeed();
    await first;
    await turn();
    const last = commits.submit(4);

    pass(DEADLINE - 1);
    batches[1]?.succeed();

    expect(await second).toBe(20);
    await expect(overdue).rejects.toThrow(
      new UnavailableError({
        cause: new Error('overloaded: the plant has waited too long for its batch'),
      }),
    );
    await turn();
    expect(batches.map(({ items }) => items)).toEqual([[1], [2], [4]]);
    batches[2]?.succeed();
    expect(await last).toBe(40);
  });

  describe('is late', () => {
    it.each([
      ['for its batch to begin', () => undefined],
      ['in the batch under way', turn],
    ])('once an item has waited for two seconds %s', async (_where, begin) => {
      const { commits } = makeGroupCommit();
      pass(1);
      void commits.submit(1);
      await begin();

      pass(1999);
      expect(commits.isLate).toBe(false);
      pass(1);

      expect(commits.isLate).toBe(true);
    });

    it('after a late answer, until an item is answered in time', async () => {
      const { commits, commitOne } = makeGroupCommit();
      await commitOne(2000);
      expect(commits.isLate).toBe(true);

      await commitOne(0);

      expect(commits.isLate).toBe(false);
    });

    it('until a probe is answered in time, beside which nothing is committed', async () => {
      const probes: PromiseWithResolvers<undefined>[] = [];
      const probe = () => {
        const each = Promise.withResolvers<undefined>();
        probes.push(each);
        return each.promise;
      };
      const { commits, batches, commitOne } = makeGroupCommit({ probe });
      await commitOne(2000);
      pass(499);
      expect(probes).toHaveLength(0);
      pass(1);
      const item = commits.submit(1);
      await turn();
      expect(batches).toHaveLength(1);

      pass(DEADLINE - 1);
      probes[0]?.reject(new Error('unexpected'));
      await turn();
      pass(500);
      expect(probes).toHaveLength(1);
      batches[1]?.succeed();
      expect(await item).toBe(10);
      await turn();
      expect(commits.isLate).toBe(true);

      pass(500);
      pass(1999);
      expect(commits.isLate).toBe(true);
      probes[1]?.resolve(undefined);
      await turn();
      expect(commits.isLate).toBe(false);
      pass(DEADLINE);
      expect(probes).toHaveLength(2);
    });
  });
});
