import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { PlantStoreError } from '../errors/errors';
import { type OpenStore, RestartNeededError, type StoreDriver } from './store-driver';

/** Commits and probes that take this long are slow. */
export const SLOW_COMMIT_MS = 2000;

/**
 * Whether a store works. It has two states:
 *
 * - `working`: the store accepts plants. It is ready.
 * - `recovering`: it accepts none. The first probe that succeeds in time makes it `working`.
 *
 * Only the repository calls it. Each reason is logged once, and so is the return to `working`.
 */
export class StoreHealth {
  private readonly logger = new Logger('PlantStore');
  /** Why the store is recovering; undefined while it works. */
  private reason: Error | undefined;
  private opened: OpenStore | undefined;
  private isProbing = false;
  private readonly reported = new Set<string>();
  private readonly stopping = new AbortController();
  private readonly restart = Promise.withResolvers<Error>();

  constructor(private readonly driver: StoreDriver) {}

  /** Why the store is recovering; undefined while it works. */
  get failure(): Error | undefined {
    return this.reason;
  }

  /** Resolves to the reason when only a restart of the process can make the store usable again. */
  get restartNeeded(): Promise<Error> {
    return this.restart.promise;
  }

  /**
   * Opens the store. If it need not be available at startup, this waits a limited time for it.
   *
   * @throws OptionError when the store must be available, and cannot be opened
   */
  async start(): Promise<void> {
    const { startTimeout } = this.driver;
    if (startTimeout === undefined) return this.open();
    this.reason = new Error('The database has not responded yet. Retrying.');
    await Promise.race([this.probe(), sleep(startTimeout, undefined, { ref: false })]);
    const { failure } = this;
    if (failure) this.report(failure);
  }

  /** Records that the store has failed, or that it is slow. */
  recordFailure(error: Error): void {
    // An operator can act on the cause of an error that is meant for clients.
    const { cause } = error;
    const reason = error instanceof PlantStoreError && cause instanceof Error ? cause : error;
    const isFinal = reason instanceof RestartNeededError;
    if (this.reason instanceof RestartNeededError) return;
    if (this.stopping.signal.aborted && !isFinal) return;
    this.reason = reason;
    this.report(this.reason);
    if (isFinal) this.restart.resolve(reason);
  }

  /** Reopens the store if it has failed, and probes it. Does nothing while it works. Called every half second. */
  async recover(): Promise<void> {
    if (this.reason && !(this.reason instanceof RestartNeededError)) await this.probe();
  }

  /** Opens the store, does what a commit does, and records the result. Does nothing while a probe is in progress. */
  async probe(): Promise<void> {
    if (this.isProbing) return;
    this.isProbing = true;
    const { reason } = this;
    try {
      await this.open();
      const start = performance.now();
      await this.driver.probe();
      if (performance.now() - start >= SLOW_COMMIT_MS) throw createSlowError(this.driver);
      // The success says nothing about a failure since the probe began, which may be final.
      if (this.reason === reason) this.recordSuccess();
    } catch (error) {
      this.recordFailure(error as Error);
    }
    this.isProbing = false;
  }

  stop(): void {
    this.stopping.abort();
  }

  private async open(): Promise<void> {
    const opened = await this.driver.open(this.stopping.signal);
    if (opened === this.opened) return;
    this.opened = opened;
    void opened.lost.then((reason) => {
      if (this.opened === opened && !this.stopping.signal.aborted) this.recordFailure(reason);
    });
  }

  private recordSuccess(): void {
    this.reason = undefined;
    if (this.reported.size > 0) this.logger.log(`${this.driver.name}: in use again.`);
    this.reported.clear();
  }

  private report({ message }: Error): void {
    if (this.reported.has(message)) return;
    this.reported.add(message);
    this.logger.error(message);
  }
}

/** Creates the reason for a store whose commits or probes are slow. */
export function createSlowError({ name }: StoreDriver): Error {
  return new Error(
    `${name}: a commit takes 2 seconds or more. Check whether the disk or the database is overloaded.`,
  );
}
