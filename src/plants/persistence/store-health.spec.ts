import fc from 'fast-check';
import { advanceClock, restoreClock, stopClock, waitForTurn } from '../../../test/support/clock';
import { useLog } from '../../../test/support/log';
import { UnavailableError } from '../errors/errors';
import type { StoreDriver } from './store-driver';
import { StoreHealth } from './store-health';

const SLOW_COMMIT_MS = 2000;
const CHECK_INTERVAL_MS = 500;
/** The time between two attempts to reopen a store, which is random, while `Math.random` returns 0.5. */
const REOPEN_DELAY_MS = 375;

const SLOW_LINE =
  'error the store: a commit takes 2 seconds or more. Check whether the disk or the database is overloaded.';
const IN_USE_AGAIN_LINE = 'log the store: in use again.';

interface Call extends PromiseWithResolvers<undefined> {
  readonly since: number;
  hasEnded: boolean;
}

function startCall(calls: Call[]): Promise<undefined> {
  const call = { ...Promise.withResolvers<undefined>(), since: performance.now(), hasEnded: false };
  calls.push(call);
  return call.promise;
}

async function endCall(call: Call | undefined, failure?: Error): Promise<void> {
  if (call) call.hasEnded = true;
  if (failure) call?.reject(failure);
  else call?.resolve(undefined);
  await waitForTurn();
}

/** A store whose commits, probes and attempts to open it are ended by the test. */
class ManualStore {
  readonly attempts: Call[] = [];
  readonly probes: Call[] = [];
  signal: AbortSignal | undefined;
  waitingSince: number | undefined;
  readonly health: StoreHealth;

  constructor(startTimeout?: number) {
    const driver: Partial<StoreDriver> = {
      name: 'the store',
      ...(startTimeout !== undefined && { startTimeout }),
      open: (signal) => {
        this.signal = signal;
        return startCall(this.attempts);
      },
      probe: () => startCall(this.probes),
    };
    this.health = new StoreHealth(
      () => driver as StoreDriver,
      () => this.waitingSince,
    );
  }

  submit(): void {
    this.health.watch();
    this.waitingSince ??= performance.now();
  }

  /** Ends a batch whose oldest plant has waited this long. */
  commit(durationMs: number, failure?: Error): void {
    this.submit();
    advanceClock(durationMs);
    this.endBatch(failure);
  }

  endBatch(failure?: Error): void {
    if (failure) this.health.recordFailedCommit(failure);
    else this.health.recordCommit();
    this.waitingSince = undefined;
  }

  endAttempt(failure?: Error): Promise<void> {
    return endCall(this.attempts.at(-1), failure);
  }

  endProbe(failure?: Error): Promise<void> {
    return endCall(this.probes.at(-1), failure);
  }

  /** Whether the store is ready, and why it accepts no plants. */
  get view(): { isReady: boolean; failure: string | undefined } {
    return { isReady: this.health.isReady, failure: this.health.failure?.message };
  }
}

const working = { isReady: true, failure: undefined };
const slow = { isReady: false, failure: undefined };
const failing = (failure: string) => ({ isReady: false, failure });

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
    restoreClock();
  });

  /** Bring the store into a state. */
  const enter = {
    working: () => undefined,
    slow: () => {
      store.commit(SLOW_COMMIT_MS);
    },
  };

  describe('goes from working to slow', () => {
    it('when a commit takes two seconds, and not before', () => {
      store.commit(SLOW_COMMIT_MS - 1);
      expect(store.view).toEqual(working);

      store.commit(SLOW_COMMIT_MS);

      expect(store.view).toEqual(slow);
      expect(lines).toEqual([SLOW_LINE]);
    });

    it('when a plant has waited two seconds, and logs that before the batch ends', () => {
      advanceClock(1);
      store.submit();
      advanceClock(SLOW_COMMIT_MS - 1);
      expect([store.health.isStalled, store.health.isReady]).toEqual([false, true]);
      advanceClock(1);
      expect([store.health.isStalled, store.health.isReady]).toEqual([true, false]);
      advanceClock(CHECK_INTERVAL_MS);

      expect(lines).toEqual([SLOW_LINE]);
      store.endBatch();
      expect(lines).toEqual([SLOW_LINE]);
      expect(store.view).toEqual(slow);
    });

    it('when a plant has waited two seconds after many fast batches', () => {
      for (let batch = 0; batch < 5; batch++) store.commit(CHECK_INTERVAL_MS - 1);
      store.submit();
      advanceClock(SLOW_COMMIT_MS + CHECK_INTERVAL_MS);

      expect(lines).toEqual([SLOW_LINE]);
    });

    it('when commits fail for two seconds after the first failed one was submitted', () => {
      store.commit(10, broken);
      advanceClock(SLOW_COMMIT_MS - 21);
      store.commit(10, new Error('not yet'));
      expect(store.view).toEqual(working);
      expect(lines).toEqual([]);

      store.commit(1, new UnavailableError({ cause: broken }));

      expect(store.view).toEqual(slow);
      expect(lines).toEqual(['error broken']);
    });

    it('when a single commit fails after two seconds', () => {
      store.commit(SLOW_COMMIT_MS, new UnavailableError());

      expect(store.view).toEqual(slow);
      expect(lines).toEqual([SLOW_LINE, `error ${new UnavailableError().message}`]);
    });

    it('when probes fail for two seconds after a failed commit', async () => {
      store.commit(0, broken);
      advanceClock(2 * CHECK_INTERVAL_MS);
      expect(store.probes).toHaveLength(1);
      advanceClock(SLOW_COMMIT_MS - 2 * CHECK_INTERVAL_MS - 1);
      await store.endProbe(new Error('a probe failed'));
      expect([store.view, lines]).toEqual([working, []]);

      advanceClock(CHECK_INTERVAL_MS);
      await store.endProbe(new Error('another probe failed'));

      expect([store.view, lines]).toEqual([slow, ['error another probe failed']]);
    });

    it('when a probe takes two seconds, even before it ends', async () => {
      store.commit(0, broken);
      advanceClock(2 * CHECK_INTERVAL_MS);
      advanceClock(SLOW_COMMIT_MS - 1);
      expect(store.view).toEqual(working);
      advanceClock(1);
      expect([store.view, lines]).toEqual([slow, [SLOW_LINE]]);

      await store.endProbe();

      expect(store.view).toEqual(slow);
    });
  });

  describe('stays working', () => {
    it('when a commit succeeds between failed ones', () => {
      for (let second = 0; second < 5; second++) {
        store.commit(1000, broken);
        store.commit(500);
      }

      expect([store.view, lines]).toEqual([working, []]);
    });

    it('when a probe succeeds after a failed commit, and is not probed further', async () => {
      store.commit(0, broken);
      advanceClock(2 * CHECK_INTERVAL_MS);
      await store.endProbe();
      advanceClock(SLOW_COMMIT_MS);
      store.commit(SLOW_COMMIT_MS - 1, broken);

      expect([store.view, lines]).toEqual([working, []]);
      expect(store.probes).toHaveLength(1);
    });

    it('without being probed when nothing has failed', () => {
      store.commit(1);
      advanceClock(SLOW_COMMIT_MS);

      expect(store.probes).toEqual([]);
      expect(jest.getTimerCount()).toBe(0);
    });
  });

  describe('goes from slow to working', () => {
    beforeEach(enter.slow);

    it('when a commit takes less than two seconds', () => {
      store.commit(SLOW_COMMIT_MS);
      expect(store.view).toEqual(slow);

      store.commit(SLOW_COMMIT_MS - 1);

      expect(store.view).toEqual(working);
      expect(lines).toEqual([SLOW_LINE, IN_USE_AGAIN_LINE]);
    });

    it('when a probe takes less than two seconds, without "in use again" until a commit does', async () => {
      advanceClock(2 * CHECK_INTERVAL_MS);
      advanceClock(SLOW_COMMIT_MS - 1);
      await store.endProbe();
      expect([store.view, lines]).toEqual([working, [SLOW_LINE]]);

      store.commit(SLOW_COMMIT_MS);
      expect([store.view, lines]).toEqual([slow, [SLOW_LINE]]);
      store.commit(0);

      expect([store.view, lines]).toEqual([working, [SLOW_LINE, IN_USE_AGAIN_LINE]]);
    });
  });

  describe('stays slow', () => {
    beforeEach(enter.slow);

    it('while probes fail, one after the other, and logs each reason once', async () => {
      for (const reason of ['broken', 'broken', 'worse', 'broken']) {
        advanceClock(2 * CHECK_INTERVAL_MS);
        await store.endProbe(new UnavailableError({ cause: new Error(reason) }));
      }

      expect(store.probes).toHaveLength(4);
      expect([store.view, lines]).toEqual([slow, [SLOW_LINE, 'error broken', 'error worse']]);
    });

    it('while commits fail, and logs at most ten reasons', () => {
      for (let row = 0; row < 20; row++) store.commit(1, new Error(`row ${row}`));

      expect(store.view).toEqual(slow);
      expect(lines).toEqual([
        SLOW_LINE,
        ...Array.from({ length: 9 }, (_, at) => `error row ${at}`),
      ]);
    });

    it('without a second probe while one is in progress', () => {
      advanceClock(10 * CHECK_INTERVAL_MS);

      expect(store.probes).toHaveLength(1);
    });

    it('without a probe while plants wait or batches end', () => {
      for (let batch = 0; batch < 5; batch++) store.commit(CHECK_INTERVAL_MS, broken);
      store.submit();
      advanceClock(2 * CHECK_INTERVAL_MS);
      expect(store.probes).toEqual([]);

      store.waitingSince = undefined;
      advanceClock(CHECK_INTERVAL_MS);

      expect(store.probes).toHaveLength(1);
    });

    it('when a probe succeeds that began before the failure of a batch', async () => {
      advanceClock(2 * CHECK_INTERVAL_MS);
      store.commit(0, broken);

      await store.endProbe();

      expect(store.view).toEqual(slow);
    });
  });

  it('stays working when a probe fails that began before a commit in time', async () => {
    enter.slow();
    advanceClock(2 * CHECK_INTERVAL_MS);
    advanceClock(SLOW_COMMIT_MS);
    store.commit(0);

    await store.endProbe(broken);
    advanceClock(SLOW_COMMIT_MS);

    expect([store.view, lines]).toEqual([working, [SLOW_LINE, IN_USE_AGAIN_LINE]]);
    expect(store.probes).toHaveLength(1);
  });

  describe.each(['working', 'slow'] as const)('goes from %s to failing', (state) => {
    beforeEach(enter[state]);

    it('when the driver reports a failure, and is reopened at once', () => {
      store.health.fail(new Error('unreachable'));
      advanceClock(0);

      expect(store.view).toEqual(failing('unreachable'));
      expect(lines.at(-1)).toBe('error unreachable');
      expect(store.attempts).toHaveLength(1);
      advanceClock(2 * CHECK_INTERVAL_MS);
      expect(store.probes).toEqual([]);
    });

    it('when the driver reports a failure, and is reopened after the delay', () => {
      store.health.fail(broken, { delay: 1000 });

      advanceClock(999);
      expect(store.attempts).toEqual([]);
      advanceClock(1);
      expect(store.attempts).toHaveLength(1);
    });
  });

  describe('stays failing', () => {
    it('with the first failure until it is reopened, whatever the result of commits and probes', async () => {
      enter.slow();
      advanceClock(2 * CHECK_INTERVAL_MS);
      store.health.fail(broken);
      store.health.fail(new Error('second'));
      store.commit(0);
      store.commit(SLOW_COMMIT_MS, new Error('third'));
      await store.endProbe();
      store.submit();
      advanceClock(SLOW_COMMIT_MS + CHECK_INTERVAL_MS);

      expect(store.view).toEqual(failing('broken'));
      expect(lines).toEqual([SLOW_LINE, 'error broken']);
      expect(store.attempts).toHaveLength(1);
    });

    it('when reopening fails, and is reopened in less than half a second', async () => {
      store.health.fail(broken);
      advanceClock(SLOW_COMMIT_MS);
      expect(store.attempts).toHaveLength(1);

      await store.endAttempt(new Error('still broken'));

      expect(store.view).toEqual(failing('still broken'));
      expect(lines).toEqual(['error broken', 'error still broken']);
      advanceClock(REOPEN_DELAY_MS - 1);
      expect(store.attempts).toHaveLength(1);
      advanceClock(1);
      expect(store.attempts).toHaveLength(2);
    });
  });

  describe('goes from failing to slow', () => {
    beforeEach(async () => {
      store.commit(0, broken);
      store.health.fail(broken);
      advanceClock(0);
      await store.endAttempt();
    });

    it('when it is reopened, and to working when the probe that follows succeeds', async () => {
      expect(store.view).toEqual(slow);
      expect(store.probes).toHaveLength(1);

      await store.endProbe();

      expect([store.view, lines]).toEqual([working, ['error broken']]);
      store.commit(SLOW_COMMIT_MS - 1, broken);
      expect(store.view).toEqual(working);
      store.commit(0);
      expect(lines).toEqual(['error broken', IN_USE_AGAIN_LINE]);
    });

    it('when it is reopened, and to working when a commit succeeds before the probe', () => {
      store.commit(0);

      expect([store.view, lines]).toEqual([working, ['error broken', IN_USE_AGAIN_LINE]]);
    });

    it('when it is reopened, and is probed again when a probe fails', async () => {
      await store.endProbe(new Error('useless'));
      expect([store.view, lines]).toEqual([slow, ['error broken', 'error useless']]);
      advanceClock(2 * CHECK_INTERVAL_MS);

      expect(store.probes).toHaveLength(2);
    });

    it('when it is reopened, and to failing when the probe detects a failure, but not in a tight loop', () => {
      store.health.fail(broken);

      expect(store.view).toEqual(failing('broken'));
      advanceClock(REOPEN_DELAY_MS - 1);
      expect(store.attempts).toHaveLength(1);
      advanceClock(1);
      expect(store.attempts).toHaveLength(2);
    });
  });

  it('logs a reason again after "in use again"', async () => {
    for (let round = 0; round < 2; round++) {
      store.health.fail(broken);
      advanceClock(REOPEN_DELAY_MS);
      await store.endAttempt();
      store.commit(0);
    }

    expect(lines).toEqual(['error broken', IN_USE_AGAIN_LINE, 'error broken', IN_USE_AGAIN_LINE]);
  });

  describe('at startup', () => {
    const message = 'The database has not responded yet. Retrying.';

    it('waits for startTimeout when the store does not respond, logs that, and continues', async () => {
      restoreClock();
      store = new ManualStore(20);

      await store.health.start();

      expect(store.view).toEqual(failing(message));
      expect(lines).toEqual([`error ${message}`]);
      await store.endAttempt();
      await store.endProbe();
      expect(store.view).toEqual(working);
    });

    it('waits for the probe, and logs nothing when it succeeds', async () => {
      store = new ManualStore(10 * SLOW_COMMIT_MS);
      const starting = store.health.start();
      store.submit();
      advanceClock(SLOW_COMMIT_MS + CHECK_INTERVAL_MS);
      expect(store.view).toEqual(failing(message));
      store.endBatch(broken);
      await store.endAttempt();
      expect(store.view).toEqual(slow);
      await store.endProbe();
      await starting;

      expect([store.view, lines]).toEqual([working, []]);
      expect(store.probes).toHaveLength(1);
    });

    it('fails when a store that must be available cannot be opened', async () => {
      const starting = store.health.start();
      await Promise.all([expect(starting).rejects.toThrow(broken), store.endAttempt(broken)]);

      expect(store.attempts).toHaveLength(1);
      expect(jest.getTimerCount()).toBe(0);
    });
  });

  describe('once stopped', () => {
    it('aborts the attempt to reopen in progress, and neither logs nor retries', async () => {
      store.health.fail(broken);
      advanceClock(0);
      store.health.stop();
      expect(store.signal?.aborted).toBe(true);

      await store.endAttempt(new Error('aborted'));
      advanceClock(SLOW_COMMIT_MS);

      expect(store.attempts).toHaveLength(1);
      expect(lines).toEqual(['error broken']);
    });

    it.each([
      [
        'attempt to reopen',
        () => {
          store.health.fail(broken);
        },
      ],
      [
        'check',
        () => {
          store.submit();
        },
      ],
    ])('starts no %s', (_what, act) => {
      act();
      store.health.stop();
      advanceClock(SLOW_COMMIT_MS);
      act();
      advanceClock(SLOW_COMMIT_MS);

      expect([...store.attempts, ...store.probes]).toEqual([]);
      expect(jest.getTimerCount()).toBe(0);
    });
  });

  it('is ready exactly when commits and probes show that it works, on any schedule', async () => {
    const event = fc.oneof(
      fc.constantFrom(
        0,
        1,
        CHECK_INTERVAL_MS,
        2 * CHECK_INTERVAL_MS,
        SLOW_COMMIT_MS - 1,
        SLOW_COMMIT_MS,
        3 * SLOW_COMMIT_MS,
      ),
      fc.constantFrom(...(['submit', 'commit', 'failed commit', 'driver failure'] as const)),
      fc.constantFrom(...(['attempt', 'failed attempt', 'probe', 'failed probe'] as const)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 30 }), async (events) => {
        store.health.stop();
        store = new ManualStore();
        lines.length = 0;
        const model = new Model(store);
        for (const each of events) {
          await model.apply(each);
          expect(store.view).toEqual(model.view);
          expect(model.findViolations(lines)).toEqual([]);
        }

        // Whatever happened, the store recovers.
        if (store.waitingSince !== undefined) await model.apply('commit');
        for (let round = 0; round < 3; round++) {
          for (const each of ['attempt', 'probe', 2 * CHECK_INTERVAL_MS] as const)
            await model.apply(each);
        }
        expect(store.view).toEqual(working);
        await model.apply('submit');
        await model.apply('commit');
        expect([undefined, IN_USE_AGAIN_LINE]).toContain(lines.at(-1));
      }),
      { numRuns: 1000, verbose: true },
    );
  });
});

type Event =
  | number
  | ('submit' | 'commit' | 'failed commit' | 'driver failure')
  | ('attempt' | 'failed attempt' | 'probe' | 'failed probe');

/** Predicts the state of a store after each event. */
class Model {
  private isFailing = false;
  private isSlow = false;
  private failingSince: number | undefined;
  /** The number of probes whose results do not count, because a later result is known. */
  private outdatedProbes = 0;

  constructor(private readonly store: ManualStore) {}

  get view(): { isReady: boolean; failure: string | undefined } {
    const { waitingSince } = this.store;
    const isStalled =
      waitingSince !== undefined && performance.now() - waitingSince >= SLOW_COMMIT_MS;
    const isReady = !this.isFailing && !this.isSlow && !isStalled;
    return { isReady, failure: this.isFailing ? 'unreachable' : undefined };
  }

  async apply(event: Event): Promise<void> {
    const { store } = this;
    if (typeof event === 'number') this.pass(event);
    else if (event === 'submit') store.submit();
    else if (event === 'commit' || event === 'failed commit') {
      if (store.waitingSince === undefined) return;
      this.record(store.waitingSince, event === 'commit');
      store.endBatch(event === 'commit' ? undefined : new Error('a commit failed'));
    } else if (event === 'driver failure') {
      store.health.fail(new Error('unreachable'));
      this.isFailing = true;
      this.outdatedProbes = store.probes.length;
    } else if (event === 'probe' || event === 'failed probe') {
      await this.endProbe(event === 'probe' ? undefined : new Error('a probe failed'));
    } else if (store.attempts.at(-1)?.hasEnded === false) {
      await store.endAttempt(event === 'attempt' ? undefined : new Error('unreachable'));
      if (event === 'attempt') [this.isFailing, this.isSlow] = [false, true];
      if (event === 'attempt') this.failingSince = undefined;
    }
  }

  /** Returns the rules that the log or the calls of the driver violate. */
  findViolations(lines: readonly string[]): string[] {
    const since = lines.slice(lines.lastIndexOf(IN_USE_AGAIN_LINE) + 1);
    const open = (calls: readonly Call[]) => calls.filter(({ hasEnded }) => !hasEnded).length;
    const violations = {
      'a line was logged twice': new Set(since).size < since.length,
      'not ready, but nothing was logged': (this.isFailing || this.isSlow) && lines.length === 0,
      'two attempts at once': open(this.store.attempts) > 1,
      'two probes at once': open(this.store.probes.slice(this.outdatedProbes)) > 1,
    };
    return Object.entries(violations).flatMap(([what, isTrue]) => (isTrue ? [what] : []));
  }

  private pass(time: number): void {
    advanceClock(time);
    const { probes } = this.store;
    const since = probes.slice(this.outdatedProbes).find(({ hasEnded }) => !hasEnded)?.since;
    if (since !== undefined && performance.now() - since >= SLOW_COMMIT_MS)
      this.isSlow ||= !this.isFailing;
  }

  private async endProbe(failure?: Error): Promise<void> {
    const at = this.store.probes.findIndex(({ hasEnded }) => !hasEnded);
    const probe = this.store.probes[at];
    if (!probe) return;
    if (at >= this.outdatedProbes) this.record(probe.since, !failure);
    await endCall(probe, failure);
  }

  private record(since: number, isSuccess: boolean): void {
    if (this.isFailing) return;
    this.outdatedProbes = this.store.probes.length;
    if (isSuccess) this.failingSince = undefined;
    else this.failingSince ??= since;
    const limit = performance.now() - SLOW_COMMIT_MS;
    if (isSuccess) this.isSlow = since <= limit;
    else this.isSlow ||= (this.failingSince ?? Infinity) <= limit;
  }
}
