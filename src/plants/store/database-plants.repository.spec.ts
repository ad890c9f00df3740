import { advanceClock, restoreClock, stopClock, waitForTurn } from '../../../test/support/clock';
import { useLog } from '../../../test/support/log';
import { DatabasePlantsRepository } from './database-plants.repository';
import type { StoreDriver } from './store-driver';

describe('DatabasePlantsRepository', () => {
  const { lines } = useLog();
  beforeEach(stopClock);
  afterEach(restoreClock);

  it('names the slow commit, and nothing else, as the failure when a batch times out', async () => {
    const driver = {
      name: 'the store',
      maxBatches: 1,
      commit: () => new Promise<never>(() => undefined),
    };
    const repository = new DatabasePlantsRepository(driver as unknown as StoreDriver);
    const timedOut = repository.insert({ id: 1n, name: 'Fern' });
    await waitForTurn();
    advanceClock(2000);
    while (repository.isReady()) await waitForTurn();
    advanceClock(8000);

    await expect(timedOut).rejects.toThrow('did not confirm the commit');

    const cause = repository.currentFailure();
    expect(lines).toEqual([`error ${cause?.message}`]);
    expect(lines).toEqual([expect.stringContaining('a commit takes 2 seconds or more')]);
    // So the request is rejected with that cause, and not because the queue is full.
    expect(repository.canAccept()).toBe(true);
    await expect(repository.insert({ id: 2n, name: 'Fern' })).rejects.toMatchObject({ cause });
  });
});
