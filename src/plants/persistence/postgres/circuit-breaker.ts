import { setTimeout } from 'node:timers/promises';

/** Milliseconds between two probes, at first and at most: whatever comes back is noticed in time. */
const FIRST_DELAY = 50;
const LONGEST_DELAY = 500;
/** Milliseconds to leave a fault alone that no probe can look into. */
const PAUSE = 1000;
/** Milliseconds that a start waits for the first probe. */
const START_TIMEOUT = 5000;

/** What a {@link CircuitBreaker} is made of. */
export interface CircuitBreakerOptions {
  /**
   * Looks whether the store is usable again. Rejects with the reason, for an operator, if not, and
   * as soon as it is told to end.
   */
  readonly probe: (ending: AbortSignal) => Promise<void>;
  /** Told once of each reason for which the store is not usable. */
  readonly onFault: (fault: Error) => void;
  /** Told when it is usable again. */
  readonly onRecovery: () => void;
}

/**
 * Keeps callers from a store that is known not to work, and finds out by itself, with no traffic
 * needed, when it works again.
 */
export class CircuitBreaker {
  private openedBy: Error | undefined = new Error('the store has not answered yet');
  private reported: string | undefined;
  private inDoubt = false;
  private readonly stopping = new AbortController();

  constructor(private readonly options: CircuitBreakerOptions) {}

  /** Why the store is not usable; undefined while it is. */
  get fault(): Error | undefined {
    return this.openedBy;
  }

  /**
   * Tries the store for the first time. If it is not usable, or does not answer soon, this goes on
   * behind the scenes.
   */
  async start(): Promise<void> {
    const first = this.probe().then((usable) => {
      if (!usable) void this.probeUntilUsable(FIRST_DELAY);
    });
    await Promise.race([first, setTimeout(START_TIMEOUT, undefined, { ref: false })]);
    if (this.openedBy) this.report(this.openedBy);
  }

  /**
   * Takes the store out of use until a probe succeeds.
   *
   * @param inDoubt whether the fault is of a kind that no probe can look into, a full disk for
   *   example: the store is in use again after a pause, and then the next success settles it
   */
  open(fault: Error, inDoubt = false): void {
    if (this.openedBy) return;
    this.openedBy = fault;
    this.inDoubt = inDoubt;
    this.report(fault);
    void this.probeUntilUsable(inDoubt ? PAUSE : 0);
  }

  /** To be called whenever the store has worked. */
  confirm(): void {
    if (this.openedBy || this.reported === undefined) return;
    this.reported = undefined;
    this.options.onRecovery();
  }

  /** Ends all probing. */
  stop(): void {
    this.stopping.abort();
  }

  private async probeUntilUsable(firstDelay: number): Promise<void> {
    let delay = firstDelay;
    do {
      try {
        // Instances that lost their database together do not come back in step.
        await setTimeout(delay * (0.5 + Math.random() / 2), undefined, this.stopping);
      } catch {
        return;
      }
      delay = Math.min(Math.max(2 * delay, FIRST_DELAY), LONGEST_DELAY);
    } while (!(await this.probe()));
  }

  private async probe(): Promise<boolean> {
    try {
      await this.options.probe(this.stopping.signal);
    } catch (error) {
      this.openedBy = error as Error;
      this.inDoubt = false;
      if (!this.stopping.signal.aborted) this.report(this.openedBy);
      return false;
    }
    this.openedBy = undefined;
    if (!this.inDoubt) this.confirm();
    return true;
  }

  private report(fault: Error): void {
    if (fault.message === this.reported) return;
    this.reported = fault.message;
    this.options.onFault(fault);
  }
}
