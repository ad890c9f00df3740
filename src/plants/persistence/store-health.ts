import { setTimeout as wait } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { StoreDriver } from './store-driver';

/** Milliseconds between two attempts to use a store again, at most. */
export const ATTEMPT_INTERVAL = 500;
/** Milliseconds without writes after a fault that an attempt cannot detect. */
export const PAUSE = 1000;
/** Milliseconds without another fault of a part of the store, after which that part works again. */
const STEADY = 10_000;
/** Milliseconds without an answer after which a plant is late. */
const LATE = 2000;

interface Working {
  readonly name: 'working';
}
interface Confirming {
  readonly name: 'confirming';
  /** From when on a committed plant shows that the fault is gone, on the clock of `performance.now()`. */
  readonly from: number;
}
interface Failing {
  readonly name: 'failing';
  readonly fault: Error;
}
interface Late {
  readonly name: 'late';
  readonly before: Working | Confirming;
}
interface Pausing {
  readonly name: 'pausing';
  readonly fault: Error;
}
type State = Working | Late | Failing | Pausing | Confirming;

/**
 * Whether a store works. Its states:
 *
 * - `working`: it takes plants, and answers in time.
 * - `late`: a plant was answered after two seconds or more. The store takes plants, but is not ready. While
 *   none come, it is probed.
 * - `failing`: it takes no plants, and is opened again and again until that succeeds, without traffic too.
 * - `pausing`: a part of it has failed, a shard for example, which an attempt cannot detect. It takes no
 *   plants for a second, and is ready, because other parts may work.
 * - `confirming`: it is used again after a fault that an attempt cannot detect. The next plants are the trial.
 *
 * | from | event | to |
 * |---|---|---|
 * | working, confirming | an answer is late | late |
 * | late | an answer is in time | what it was before |
 * | all but failing | a fault | failing |
 * | all but failing | a fault of a part | pausing |
 * | failing | an attempt fails | failing |
 * | failing | an attempt succeeds | working, or confirming if that proves nothing |
 * | pausing | a second passes | confirming |
 * | confirming | a plant is committed, ten seconds after a fault of a part | working |
 *
 * The log has each reason once, and the recovery.
 */
export class StoreHealth {
  private readonly logger = new Logger('PlantStore');
  private state: State = { name: 'working' };
  /** For the next step out of the present state. */
  private timer: NodeJS.Timeout | undefined;
  /** The fault that the log has named, until the store works again. */
  private reported: string | undefined;
  private readonly stopping = new AbortController();

  /** @param waitingSince since when the oldest plant without an answer has waited; undefined without one */
  constructor(
    private readonly driver: () => StoreDriver,
    private readonly waitingSince: () => number | undefined,
  ) {}

  /** Whether the store would probably take a plant now, and answer in time. */
  get isReady(): boolean {
    return this.state.name !== 'failing' && this.state.name !== 'late' && !this.isSilent;
  }

  /** Whether a plant has waited for long by now. */
  get isSilent(): boolean {
    const now = performance.now();
    return now - (this.waitingSince() ?? now) >= LATE;
  }

  /** Why the store is not usable; undefined while it is. */
  get fault(): Error | undefined {
    return this.state.name === 'failing' ? this.state.fault : undefined;
  }

  /** Why the store takes no plants now, although it may be usable; undefined while it takes them. */
  get refusal(): Error | undefined {
    return 'fault' in this.state ? this.state.fault : undefined;
  }

  /**
   * Opens the store. If that fails or takes long, attempts go on after this, unless the store must be there.
   *
   * @throws StoreOpenError when it must be there, and cannot be opened
   */
  async start(): Promise<void> {
    const { startTimeout } = this.driver();
    if (startTimeout === undefined) return this.driver().open(this.stopping.signal);
    const fault = new Error(
      'The database has not answered yet. The service keeps trying to connect.',
    );
    this.enter({ name: 'failing', fault });
    await Promise.race([this.attempt(), wait(startTimeout, undefined, { ref: false })]);
    if (this.fault) this.report(this.fault);
  }

  /**
   * @param isProvable whether an attempt can detect the fault, unlike a full disk
   * @param delay milliseconds until the first attempt
   */
  fail(fault: Error, { isProvable = true, delay = 0 } = {}): void {
    if (this.fault) return;
    this.report(fault);
    this.enter({ name: 'failing', fault }, delay, () => this.attempt(isProvable));
  }

  /** Refuses plants for a moment after a fault of a part of the store. */
  pause(fault: Error): void {
    if (this.fault) return;
    this.report(fault);
    const from = performance.now() + STEADY;
    this.enter({ name: 'pausing', fault }, PAUSE, () => {
      this.enter({ name: 'confirming', from });
    });
  }

  /** A plant was committed. */
  confirm(): void {
    if (this.state.name === 'confirming' && performance.now() >= this.state.from) this.recover();
  }

  /** @param time milliseconds that a plant has waited for its answer, or a probe */
  answer(time: number): void {
    const before = this.state;
    if (time < LATE) {
      if (before.name === 'late') this.enter(before.before);
    } else if (before.name === 'working' || before.name === 'confirming') {
      this.probeLater({ name: 'late', before });
    }
  }

  stop(): void {
    this.stopping.abort();
    clearTimeout(this.timer);
  }

  private enter(state: State, delay = 0, next?: () => unknown): void {
    clearTimeout(this.timer);
    this.state = state;
    if (next && !this.stopping.signal.aborted) this.timer = setTimeout(next, delay);
  }

  /** @param isProvable whether success shows that the fault is gone */
  private async attempt(isProvable = true): Promise<void> {
    try {
      await this.driver().open(this.stopping.signal);
    } catch (error) {
      const fault = error as Error;
      this.report(fault);
      // Random, so that instances do not try in step after a common outage.
      const delay = ATTEMPT_INTERVAL * (0.5 + Math.random() / 2);
      this.enter({ name: 'failing', fault }, delay, () => this.attempt());
      return;
    }
    if (isProvable) this.recover();
    else this.enter({ name: 'confirming', from: performance.now() });
  }

  private recover(): void {
    this.enter({ name: 'working' });
    if (this.reported !== undefined) this.logger.log(`${this.driver().name}: in use again.`);
    this.reported = undefined;
  }

  private probeLater(late: Late): void {
    this.enter(late, ATTEMPT_INTERVAL, () => this.probe(late));
  }

  private async probe(late: Late): Promise<void> {
    // What waits will show whether the store is in time.
    if (this.waitingSince() === undefined) {
      const start = performance.now();
      try {
        await this.driver().probe();
        if (this.state === late) this.answer(performance.now() - start);
      } catch {
        // The driver has reported a fault, or the next probe shows more.
      }
    }
    if (this.state === late) this.probeLater(late);
  }

  private report(fault: Error): void {
    if (fault.message === this.reported || this.stopping.signal.aborted) return;
    this.reported = fault.message;
    this.logger.error(fault.message);
  }
}
