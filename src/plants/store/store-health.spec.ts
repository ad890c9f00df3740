import { advanceClock, restoreClock, stopClock, waitForTurn } from '../../../test/support/clock';
import { useLog } from '../../../test/support/log';
import { type StoreDriver, StoreFailure } from './store-driver';
import { StoreHealth } from './store-health';

const SLOW_COMMIT_MS = 2000;

/** A store whose probes and attempts to open it are ended by the test. */
class ManualStore implements Pick<StoreDriver, 'name' | 'open' | 'probe'> {
  readonly name = 'the store';
  readonly opening: PromiseWithResolvers<void>[] = [];
  readonly probes: PromiseWithResolvers<void>[] = [];
  readonly health: StoreHealth;
  onLost: (failure: StoreFailure) => void = jest.fn();

  constructor(readonly startTimeout?: number) {
    this.health = new StoreHealth(this as unknown as StoreDriver);
  }

  open(_signal: AbortSignal, onLost: (failure: StoreFailure) => void): Promise<void> {
    this.onLost = onLost;
    this.opening.push(Promise.withResolvers());
    return this.opening.at(-1)?.promise ?? Promise.reject(new Error());
  }

  probe(): Promise<void> {
    this.probes.push(Promise.withResolvers());
    return this.probes.at(-1)?.promise ?? Promise.reject(new Error());
  }

  /** Ends the attempt to open the store. */
  async endOpening(failure?: Error): Promise<void> {
    if (failure) this.opening.at(-1)?.reject(failure);
    else this.opening.at(-1)?.resolve();
    await waitForTurn();
  }

  async endProbe(failure?: Error): Promise<void> {
    if (failure) this.probes.at(-1)?.reject(failure);
    else this.probes.at(-1)?.resolve();
    await waitForTurn();
  }

  /** Begins an attempt to recover, and opens the store. */
  async reopen(): Promise<void> {
    void this.health.recover();
    await this.endOpening();
  }
}

describe('StoreHealth', () => {
  const { lines } = useLog();
  const broken = new StoreFailure('unknown', 'broken');
  const inUseAgain = 'log the store: in use again.';
  let store: ManualStore;
  beforeEach(() => {
    stopClock();
    store = new ManualStore();
  });
  afterEach(() => {
    store.health.stop();
    restoreClock();
  });

  it('recovers by the first probe that succeeds, and logs each reason and the recovery once', async () => {
    store.health.recordFailure(broken);
    store.health.recordFailure(broken);
    expect(store.health.failure).toBe(broken);
    void store.health.recover();
    void store.health.recover();
    expect(store.opening).toHaveLength(1);
    await store.endOpening(new StoreFailure('notStored', 'refused'));
    expect(store.health.failure?.message).toBe('refused');
    await store.reopen();
    await store.endProbe(broken);
    expect(store.health.failure).toBe(broken);
    await store.reopen();
    await store.endProbe();

    expect(store.health.failure).toBeUndefined();
    expect(lines).toEqual(['error broken', 'error refused', inUseAgain]);
  });

  it('keeps recovering while probes take two seconds', async () => {
    store.health.recordFailure(broken);
    await store.reopen();
    advanceClock(SLOW_COMMIT_MS);
    await store.endProbe();
    expect(store.health.failure?.message).toMatch(/^the store: a commit takes 2 seconds or more/);

    await store.reopen();
    advanceClock(SLOW_COMMIT_MS - 1);
    await store.endProbe();

    expect(store.health.failure).toBeUndefined();
  });

  it('recovers when a store fails that no request uses', async () => {
    const starting = store.health.start();
    await store.endOpening();
    await starting;

    store.onLost(broken);

    expect(store.health.failure).toBe(broken);
  });

  it('tries nothing more once a restart is needed, and reports the reason', async () => {
    const reason = new StoreFailure('unknown', 'unclear', { reach: 'process' });
    store.health.recordFailure(broken);
    store.health.recordFailure(reason);
    store.health.recordFailure(broken);
    await store.health.recover();

    expect(await store.health.restartNeeded).toBe(reason);
    expect(store.health.failure).toBe(reason);
    expect(store.opening).toEqual([]);
  });

  it.each([
    ['a final failure', new StoreFailure('unknown', 'unclear', { reach: 'process' })],
    ['a failure', new StoreFailure('unknown', 'lost')],
  ])('keeps %s that was recorded while a successful probe was running', async (_kind, failure) => {
    void store.health.probe();
    await store.endOpening();
    store.health.recordFailure(failure);
    await store.endProbe();

    expect(store.health.failure).toBe(failure);
  });

  it('does not log once stopped', () => {
    store.health.stop();
    store.health.recordFailure(broken);

    expect(lines).toEqual([]);
  });

  describe('at startup', () => {
    const notYet = 'The database has not responded yet. Retrying.';

    it('fails if a store that must be available cannot be opened', async () => {
      const starting = store.health.start();
      await Promise.all([expect(starting).rejects.toThrow(broken), store.endOpening(broken)]);

      expect(store.opening).toHaveLength(1);
    });

    it('waits a limited time for a store that need not be available, and then recovers', async () => {
      restoreClock();
      store = new ManualStore(20);
      await store.health.start();
      expect(store.health.failure?.message).toBe(notYet);
      expect(lines).toEqual([`error ${notYet}`]);

      await store.endOpening();
      await store.endProbe();

      expect(store.health.failure).toBeUndefined();
    });
  });
});
