import { setTimeout as wait } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { PlantStoreError } from '../errors/errors';
import type { StoreDriver } from './store-driver';

/** The longest time between two attempts to reopen a store. */
export const REOPEN_INTERVAL_MS = 500;
/** The delay before the store is reopened after a failure that reopening may not detect. */
export const UNDETECTED_FAILURE_DELAY_MS = 1000;
/** Commits that take this long are slow. A store that commits nothing in this time is not ready. */
const SLOW_COMMIT_MS = 2000;
const CHECK_INTERVAL_MS = 500;
/** The maximum number of logged failures of a slow store: each row may have a message of its own. */
const MAX_REPORTED_REASONS = 10;

const SLOW_COMMIT_MESSAGE =
  'a commit takes 2 seconds or more. Check whether the disk or the database is overloaded.';

/** A state of {@link StoreHealth}. */
interface State {
  readonly name: 'working' | 'slow' | 'failing';
  /** Why the store is failing; undefined in the other states. */
  readonly failure?: Error;
}

/**
 * Determines whether a store works. Its states:
 *
 * - `working`: it accepts plants and commits them in time. Only in this state is it ready.
 * - `slow`: for two seconds, no attempted commit has succeeded in time. Commits take longer, or all of them
 *   fail. The store still accepts plants, so that a commit can show that it works again.
 * - `failing`: it accepts no plants. It is reopened repeatedly until that succeeds, even without traffic.
 *
 * | from | event | to |
 * |---|---|---|
 * | working | a plant or a probe has waited two seconds for its commit | slow |
 * | working | a commit or a probe fails, two seconds or more after the first failure began | slow |
 * | slow | a commit takes less than two seconds, or a probe while there is no traffic | working |
 * | working, slow | the driver reports a failure of the store | failing |
 * | failing | the store cannot be reopened | failing |
 * | failing | the store is reopened; a probe follows | slow |
 *
 * While there is no traffic, a slow store is probed, and so is a working store after a failure. Each success,
 * even a slow one, clears the failures before it. After a final failure, no attempt to reopen the store
 * succeeds.
 *
 * Each reason is logged once, when the store stops being ready. "in use again" is logged when a plant is
 * committed in time after that.
 */
export class StoreHealth {
  private readonly logger = new Logger('PlantStore');
  private state: State = { name: 'working' };
  /** For the next attempt to reopen a failing store, or for the next check in another state. */
  private timer: NodeJS.Timeout | undefined;
  /** The earliest time of the next attempt to reopen the store. */
  private reopensFrom = -Infinity;
  /** When the first failed plant or probe since the last success began. */
  private failingSince: number | undefined;
  /** The probe in progress, unless its result no longer counts. */
  private currentProbe: { readonly since: number } | undefined;
  /** Whether a batch has ended since the last check. */
  private hasTraffic = false;
  /** The messages that were logged since a plant was last committed in time. */
  private readonly reported = new Set<string>();
  private readonly stopping = new AbortController();

  /** @param waitingSince when the oldest unsettled plant was submitted; undefined if there is none */
  constructor(
    private readonly driver: () => StoreDriver,
    private readonly waitingSince: () => number | undefined,
  ) {}

  /** Whether the store would probably commit a plant in time. */
  get isReady(): boolean {
    return this.state.name === 'working' && !this.isStalled;
  }

  /** Whether the oldest waiting plant has waited too long. */
  get isStalled(): boolean {
    return elapsedSince(this.waitingSince()) >= SLOW_COMMIT_MS;
  }

  /** Why the store accepts no plants; undefined while it accepts them. */
  get failure(): Error | undefined {
    return this.state.failure;
  }

  /**
   * Opens the store. If that fails or takes too long, it keeps retrying in the background, unless the store
   * must be available at startup.
   *
   * @throws StoreOpenError when it must be available, and cannot be opened
   */
  async start(): Promise<void> {
    const { startTimeout } = this.driver();
    if (startTimeout === undefined) return this.driver().open(this.stopping.signal);
    const failure = new Error('The database has not responded yet. Retrying.');
    this.state = { name: 'failing', failure };
    await Promise.race([this.reopen(), wait(startTimeout, undefined, { ref: false })]);
    if (this.failure) this.report(this.failure);
  }

  /** Checks from now on whether a waiting plant waits too long. */
  watch(): void {
    if (this.timer || this.state.name === 'failing' || this.stopping.signal.aborted) return;
    this.timer = setTimeout(() => {
      this.check();
    }, CHECK_INTERVAL_MS).unref();
  }

  /**
   * Records that plants were stored, or were found to be stored already. The oldest plant of their batch is
   * still unsettled.
   */
  recordCommit(): void {
    this.hasTraffic = true;
    this.recordSuccess(elapsedSince(this.waitingSince()));
    if (this.state.name !== 'working' || this.reported.size === 0) return;
    this.reported.clear();
    this.logger.log(`${this.driver().name}: in use again.`);
  }

  /** Records that no plant of a batch was stored. The oldest plant of the batch is still unsettled. */
  recordFailedCommit(error: Error): void {
    this.hasTraffic = true;
    this.recordFailure(error, elapsedSince(this.waitingSince()));
  }

  /**
   * Records that the store has failed, and reopens it.
   *
   * @param delay milliseconds until the first attempt to reopen it
   */
  fail(failure: Error, { delay = 0 } = {}): void {
    if (this.state.name === 'failing') return;
    this.report(failure);
    this.currentProbe = undefined;
    clearTimeout(this.timer);
    this.keepFailing(failure, delay);
  }

  stop(): void {
    this.stopping.abort();
    clearTimeout(this.timer);
  }

  private recordSuccess(duration: number): void {
    if (this.state.name === 'failing') return;
    this.currentProbe = undefined;
    this.failingSince = undefined;
    if (duration >= SLOW_COMMIT_MS) this.slowDown();
    else this.state = { name: 'working' };
  }

  private recordFailure(error: Error, duration: number): void {
    if (this.state.name === 'failing') return;
    this.currentProbe = undefined;
    this.failingSince ??= performance.now() - duration;
    const reason = toActionableError(error);
    if (elapsedSince(this.failingSince) >= SLOW_COMMIT_MS) this.slowDown(reason);
    if (this.state.name === 'slow' && this.reported.size < MAX_REPORTED_REASONS)
      this.report(reason);
    this.watch();
  }

  /** @param reason why nothing was committed in time; by default, that commits are slow */
  private slowDown(reason = new Error(`${this.driver().name}: ${SLOW_COMMIT_MESSAGE}`)): void {
    this.report(reason);
    this.state = { name: 'slow' };
    this.watch();
  }

  /**
   * Detects what the end of a batch cannot show: that a plant is still waiting, and whether a store without
   * traffic works.
   */
  private check(): void {
    this.timer = undefined;
    const isWaiting = this.waitingSince() !== undefined;
    if (this.isStalled || elapsedSince(this.currentProbe?.since) >= SLOW_COMMIT_MS) this.slowDown();
    const isInDoubt = this.state.name === 'slow' || this.failingSince !== undefined;
    if (isInDoubt && !isWaiting && !this.hasTraffic) void this.probe();
    this.hasTraffic = false;
    if (isInDoubt || isWaiting) this.watch();
  }

  /** Probes the store unless a probe is in progress. The result does not count once a batch has ended. */
  private async probe(): Promise<void> {
    if (this.currentProbe) return;
    const probe = (this.currentProbe = { since: performance.now() });
    const failure = await this.driver()
      .probe()
      .then(() => undefined, toError);
    if (this.currentProbe !== probe) return;
    if (failure) this.recordFailure(failure, elapsedSince(probe.since));
    else this.recordSuccess(elapsedSince(probe.since));
  }

  private async reopen(): Promise<void> {
    const failure = await this.driver()
      .open(this.stopping.signal)
      .then(() => undefined, toError);
    // A random delay, so that instances do not reconnect at the same moment after a common outage.
    this.reopensFrom = performance.now() + REOPEN_INTERVAL_MS * (0.5 + Math.random() / 2);
    if (failure) {
      this.report(failure);
      this.keepFailing(failure);
      return;
    }
    this.timer = undefined;
    this.failingSince = undefined;
    this.state = { name: 'slow' };
    this.watch();
    await this.probe();
  }

  private keepFailing(failure: Error, delay = 0): void {
    this.state = { name: 'failing', failure };
    if (this.stopping.signal.aborted) return;
    const earliest = this.reopensFrom - performance.now();
    this.timer = setTimeout(() => void this.reopen(), Math.max(delay, earliest));
  }

  private report({ message }: Error): void {
    if (this.reported.has(message) || this.stopping.signal.aborted) return;
    this.reported.add(message);
    this.logger.error(message);
  }
}

/** Returns the milliseconds since a moment; 0 if it is undefined. */
function elapsedSince(moment = performance.now()): number {
  return performance.now() - moment;
}

function toError(error: unknown): Error {
  return error as Error;
}

/** Returns the error that an operator can act on: the cause of an error that is meant for clients. */
function toActionableError(error: Error): Error {
  return error instanceof PlantStoreError && error.cause instanceof Error ? error.cause : error;
}
