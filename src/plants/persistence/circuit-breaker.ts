import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';

/** Milliseconds between two probes, at most. */
export const PROBE_INTERVAL = 500;
/** Milliseconds without use after a fault that a probe cannot detect. */
const PAUSE = 1000;
/** Milliseconds that the start waits for the first probe. */
const START_TIMEOUT = 5000;
/** Milliseconds without another fault of a part of the store, after which that part works again. */
const STEADY = 10_000;

/**
 * Keeps callers from a store that does not work, and probes it until it works again, without traffic
 * too. The log has each reason once, and the recovery.
 */
export class CircuitBreaker {
  private readonly logger = new Logger('PlantStore');
  private openedBy: Error | undefined;
  private reported: string | undefined;
  /** Whether a successful probe proves that the present fault is gone. */
  private isProbeProof = true;
  private readonly stopping = new AbortController();
  private pausedBy: Error | undefined;
  /** On the clock of `performance.now()`. */
  private pausedAt = -Infinity;

  /**
   * @param check rejects with a reason for the operator, and as soon as the signal is aborted
   * @param name of the store in use, for the log
   */
  constructor(
    private readonly check: (signal: AbortSignal) => Promise<void>,
    private readonly name: () => string,
  ) {}

  /** Why the store is not usable; undefined while it is. */
  get fault(): Error | undefined {
    return this.openedBy;
  }

  /** Why writes are refused for a moment, although the store is usable. */
  get pauseReason(): Error | undefined {
    return performance.now() < this.pausedAt + PAUSE ? this.pausedBy : undefined;
  }

  /** Probes the store for the first time. If that fails or takes long, probing goes on after this. */
  async start(): Promise<void> {
    const why = 'The database has not answered yet. The service keeps trying to connect.';
    this.openedBy = new Error(why);
    const first = this.probe().then((isUsable) => {
      if (!isUsable) void this.probeUntilUsable(PROBE_INTERVAL);
    });
    await Promise.race([first, setTimeout(START_TIMEOUT, undefined, { ref: false })]);
    if (this.fault) this.report(this.fault);
  }

  /**
   * Takes the store out of use until a probe succeeds.
   *
   * @param canProbe if a probe cannot detect the fault, as with a full disk, the store is used again
   *   after a pause, and counts as recovered at its next success
   * @param delay milliseconds until the first probe
   */
  open(fault: Error, canProbe = true, delay = canProbe ? 0 : PAUSE): void {
    if (this.openedBy || this.stopping.signal.aborted) return;
    this.openedBy = fault;
    this.isProbeProof = canProbe;
    this.report(fault);
    void this.probeUntilUsable(delay);
  }

  /**
   * Refuses writes for a second after a fault of a part of the store, a shard for example. A probe
   * cannot detect such a fault, so the next write is the trial.
   */
  pause(fault: Error): void {
    this.pausedBy = fault;
    this.pausedAt = performance.now();
    this.report(fault);
  }

  confirm(): void {
    if (this.openedBy || this.reported === undefined) return;
    // The success may be one of another part.
    if (performance.now() < this.pausedAt + STEADY) return;
    this.reported = undefined;
    this.logger.log(`${this.name()}: in use again.`);
  }

  stop(): void {
    this.stopping.abort();
  }

  private async probeUntilUsable(firstDelay: number): Promise<void> {
    let delay = firstDelay;
    do {
      try {
        // Random, so that instances do not probe in step after a common outage.
        await setTimeout(delay * (0.5 + Math.random() / 2), undefined, this.stopping);
      } catch {
        return;
      }
      delay = PROBE_INTERVAL;
    } while (!(await this.probe()));
  }

  private async probe(): Promise<boolean> {
    try {
      await this.check(this.stopping.signal);
    } catch (error) {
      this.openedBy = error as Error;
      this.isProbeProof = true;
      if (!this.stopping.signal.aborted) this.report(this.openedBy);
      return false;
    }
    this.openedBy = undefined;
    if (this.isProbeProof) this.confirm();
    return true;
  }

  private report(fault: Error): void {
    if (fault.message === this.reported) return;
    this.reported = fault.message;
    this.logger.error(fault.message);
  }
}
