import fc from 'fast-check';
import { pass, releaseClock, stopClock, turn } from '../../../test/support/clock';
import { useLog } from '../../../test/support/log';
import type { StoreDriver } from './store-driver';
import { StoreHealth } from './store-health';

/** Milliseconds, each as the documentation of the states says. */
const LATE = 2000;
const PAUSE = 1000;
const STEADY = 10_000;
const PROBE_DELAY = 500;
/** The time between two attempts is random. This is the middle. */
const ATTEMPT_INTERVAL = 375;

function begin(calls: PromiseWithResolvers<undefined>[]): Promise<undefined> {
  const call = Promise.withResolvers<undefined>();
  calls.push(call);
  return call.promise;
}

async function end(calls: PromiseWithResolvers<undefined>[], fault?: Error): Promise<void> {
  if (fault) calls.at(-1)?.reject(fault);
  else calls.at(-1)?.resolve(undefined);
  await turn();
}

/** A store whose attempts and probes the test ends. */
class ManualStore {
  readonly attempts: PromiseWithResolvers<undefined>[] = [];
  readonly probes: PromiseWithResolvers<undefined>[] = [];
  signal: AbortSignal | undefined;
  waitingSince: number | undefined;
  readonly health: StoreHealth;

  constructor(startTimeout = STEADY) {
    const driver: Partial<StoreDriver> = {
      name: 'the store',
      startTimeout,
      open: (signal) => {
        this.signal = signal;
        return begin(this.attempts);
      },
      probe: () => begin(this.probes),
    };
    this.health = new StoreHealth(
      () => driver as StoreDriver,
      () => this.waitingSince,
    );
  }

  endAttempt(fault?: Error): Promise<void> {
    return end(this.attempts, fault);
  }

  endProbe(fault?: Error): Promise<void> {
    return end(this.probes, fault);
  }

  /** What the repository asks: whether it is ready, and why it refuses. */
  get view(): { isReady: boolean; fault: string | undefined; refusal: string | undefined } {
    const { isReady, fault, refusal } = this.health;
    return { isReady, fault: fault?.message, refusal: refusal?.message };
  }
}

const working = { isReady: true, fault: undefined, refusal: undefined };
const late = { ...working, isReady: false };
const failing = (why: string) => ({ isReady: false, fault: why, refusal: why });
const pausing = (why: string) => ({ ...working, refusal: why });

describe('StoreHealth', () => {
  const { lines } = useLog();
  const broken = new Error('broken');
  let store: ManualStore;
  beforeEach(() => {
    stopClock();
    jest.spyOn(Math, 'random').mockReturnValue(0.5);
    store = new ManualStore();
  });
  afterEach(() => {
    store.health.stop();
    jest.restoreAllMocks();
    releaseClock();
  });

  /** Brings the store into each of its states. */
  const ways = {
    working: () => undefined,
    late: () => {
      store.health.answer(LATE);
    },
    pausing: () => {
      store.health.pause(broken);
    },
    confirming: () => {
      store.health.pause(broken);
      pass(PAUSE);
    },
  };

  it.each(['working', 'late', 'pausing', 'confirming'] as const)(
    'fails from %s, and is opened at once, not probed',
    async (state) => {
      ways[state]();

      store.health.fail(new Error('gone'));
      pass(0);

      expect(store.view).toEqual(failing('gone'));
      expect(store.attempts).toHaveLength(1);
      pass(PROBE_DELAY);
      expect(store.probes).toHaveLength(0);
      await store.endAttempt();
      expect(store.view).toEqual(working);
      expect(lines.at(-1)).toBe('log the store: in use again.');
    },
  );

  it.each(['working', 'late', 'pausing', 'confirming'] as const)(
    'pauses from %s after a fault of a part, for a second',
    (state) => {
      ways[state]();

      store.health.pause(new Error('a part is gone'));

      pass(PAUSE - 1);
      expect(store.view).toEqual(pausing('a part is gone'));
      pass(1);
      expect(store.view).toEqual(working);
      expect(store.attempts).toEqual([]);
    },
  );

  it('keeps the first fault until an attempt, and then the fault of that', async () => {
    store.health.fail(broken);
    store.health.fail(new Error('second'));
    store.health.pause(new Error('third'));
    store.health.answer(LATE);
    store.health.confirm();
    expect(store.view).toEqual(failing('broken'));

    pass(0);
    await store.endAttempt(new Error('still broken'));

    expect(store.view).toEqual(failing('still broken'));
    expect(lines).toEqual(['error broken', 'error still broken']);
  });

  it('is opened again less than half a second after an attempt that has failed, and not beside it', async () => {
    store.health.fail(broken, { delay: 100 });
    pass(99);
    expect(store.attempts).toHaveLength(0);
    pass(1);
    pass(STEADY);
    expect(store.attempts).toHaveLength(1);

    await store.endAttempt(broken);
    pass(ATTEMPT_INTERVAL - 1);
    expect(store.attempts).toHaveLength(1);
    pass(1);
    expect(store.attempts).toHaveLength(2);
  });

  it('takes plants after an attempt, and works once one is committed, if an attempt proves nothing', async () => {
    store.health.fail(broken, { isProvable: false });
    pass(0);
    await store.endAttempt();
    expect(store.view).toEqual(working);
    expect(lines).toEqual(['error broken']);

    store.health.confirm();

    expect(lines).toEqual(['error broken', 'log the store: in use again.']);
  });

  it('takes a fault that an attempt has found for gone when an attempt succeeds', async () => {
    store.health.fail(broken, { isProvable: false });
    pass(0);
    await store.endAttempt(new Error('another'));
    pass(ATTEMPT_INTERVAL);
    await store.endAttempt();

    expect(lines.at(-1)).toBe('log the store: in use again.');
  });

  it('works ten seconds after the fault of a part, because a commit may be one of other parts', () => {
    store.health.pause(broken);
    pass(STEADY - 1);
    store.health.confirm();
    expect(lines).toEqual(['error broken']);

    pass(1);
    store.health.confirm();

    expect(lines).toEqual(['error broken', 'log the store: in use again.']);
  });

  describe('is late', () => {
    it('while a plant has waited for two seconds', () => {
      pass(1);
      store.waitingSince = performance.now();
      pass(LATE - 1);
      expect([store.health.isSilent, store.health.isReady]).toEqual([false, true]);
      pass(1);
      expect([store.health.isSilent, store.health.isReady]).toEqual([true, false]);
    });

    it('after an answer of two seconds, until one in time, and is then what it was', () => {
      ways.confirming();
      store.health.answer(LATE - 1);
      expect(store.view).toEqual(working);
      store.health.answer(LATE);
      store.health.answer(LATE);
      store.health.confirm();
      expect(store.view).toEqual(late);

      store.health.answer(LATE - 1);
      expect(store.view).toEqual(working);
      expect(lines).toEqual(['error broken']);
      pass(STEADY);
      store.health.confirm();

      expect(lines).toEqual(['error broken', 'log the store: in use again.']);
    });

    it('never while it pauses', () => {
      ways.pausing();

      store.health.answer(LATE);
      store.health.answer(0);

      expect(store.view).toEqual(pausing('broken'));
    });

    it('until a probe is answered in time, each half a second after the one before', async () => {
      ways.late();
      pass(PROBE_DELAY - 1);
      expect(store.probes).toHaveLength(0);
      pass(1);
      pass(LATE);
      await store.endProbe();
      expect(store.view).toEqual(late);
      pass(PROBE_DELAY);
      await store.endProbe(new Error('unexpected'));
      expect(store.view).toEqual(late);
      pass(PROBE_DELAY);
      pass(LATE - 1);
      expect(store.probes).toHaveLength(3);

      await store.endProbe();

      expect(store.view).toEqual(working);
      pass(STEADY);
      expect(store.probes).toHaveLength(3);
    });

    it('without a probe while a plant waits', () => {
      ways.late();
      store.waitingSince = performance.now();
      pass(PROBE_DELAY);
      expect(store.probes).toHaveLength(0);

      store.waitingSince = undefined;
      pass(PROBE_DELAY);

      expect(store.probes).toHaveLength(1);
    });

    it('no longer after an answer in time, whatever a probe under way finds', async () => {
      ways.late();
      pass(PROBE_DELAY);
      store.health.answer(0);
      pass(LATE);

      await store.endProbe();

      expect(store.view).toEqual(working);
    });
  });

  describe('at the start', () => {
    it('waits for a moment for a store that does not answer, says so, and goes on', async () => {
      store = new ManualStore(20);
      releaseClock();
      const why = 'The database has not answered yet. The service keeps trying to connect.';

      await store.health.start();

      expect(store.view).toEqual(failing(why));
      expect(lines).toEqual([`error ${why}`]);
      await store.endAttempt();
      expect(store.view).toEqual(working);
      expect(lines).toEqual([`error ${why}`, 'log the store: in use again.']);
    });
  });

  it('ends its attempts when it stops, and says no more', async () => {
    store.health.fail(broken);
    pass(0);
    store.health.stop();
    expect(store.signal?.aborted).toBe(true);

    await store.endAttempt(new Error('aborted'));
    pass(STEADY);

    expect(store.attempts).toHaveLength(1);
    expect(lines).toEqual(['error broken']);
  });

  it('does not begin an attempt when it stops before', () => {
    store.health.fail(broken);
    store.health.stop();
    pass(STEADY);

    expect(store.attempts).toEqual([]);
  });

  it('ends up working on any schedule, once its attempts and answers are good', async () => {
    const event = fc.constantFrom(
      ...[0, 1, PROBE_DELAY, PAUSE, LATE, STEADY],
      ...(['answer', 'late answer', 'fault', 'unprovable fault', 'pause', 'confirm'] as const),
      ...(['attempt', 'failed attempt', 'probe', 'failed probe'] as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 20 }), async (events) => {
        store = new ManualStore();
        for (const each of events) {
          if (typeof each === 'number') pass(each);
          else if (each === 'answer') store.health.answer(0);
          else if (each === 'late answer') store.health.answer(LATE);
          else if (each === 'fault') store.health.fail(broken);
          else if (each === 'unprovable fault') store.health.fail(broken, { isProvable: false });
          else if (each === 'pause') store.health.pause(broken);
          else if (each === 'confirm') store.health.confirm();
          else if (each === 'attempt') await store.endAttempt();
          else if (each === 'failed attempt') await store.endAttempt(broken);
          else if (each === 'probe') await store.endProbe();
          else await store.endProbe(broken);
          const { isReady, fault, refusal } = store.health;
          // What fails is not ready, and all that fails is refused.
          expect(fault !== undefined && (isReady || refusal !== fault)).toBe(false);
        }
        for (let round = 0; round < 3; round++) {
          pass(STEADY);
          await store.endAttempt();
          store.health.answer(0);
        }
        expect(store.view).toEqual(working);
      }),
      { numRuns: 300, verbose: true },
    );
  });
});
