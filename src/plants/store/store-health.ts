import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { type StoreDriver, StoreFailure } from './store-driver';

/** Commits and probes that take this long are slow. */
export const SLOW_COMMIT_MS = 2000;

/**
 * Whether a store works. A store that has failed or is slow recovers: it accepts no plants until a probe succeeds in
 * time. Only the repository calls it. Each reason is logged once, and so is the end of the recovery.
 */
export class StoreHealth {
  private readonly logger = new Logger('PlantStore');
  private latestFailure: StoreFailure | undefined;
  private isProbing = false;
  /** The messages that were logged since the store worked last. */
  private readonly reported = new Set<string>();
  /** Aborted when the repository closes. */
  private readonly stopping = new AbortController();
  private readonly restart = Promise.withResolvers<StoreFailure>();

  constructor(private readonly driver: StoreDriver) {}

  /** Why the store is recovering; undefined while it works. */
  get failure(): StoreFailure | undefined {
    return this.latestFailure;
  }

  /** Resolves to the failure when only a restart of the process can make the store usable again. */
  get restartNeeded(): Promise<StoreFailure> {
    return this.restart.promise;
  }

  /**
   * Opens the store. If it need not be available at startup, this waits a limited time for it.
   * @throws OptionError when the store must be available, and cannot be opened
   */
  async start(): Promise<void> {
    const { startTimeout } = this.driver;
    if (startTimeout === undefined) return this.open();
    // Until the first probe succeeds, the store counts as failed.
    const reason = 'The database has not responded yet. Retrying.';
    this.latestFailure = new StoreFailure('notStored', reason);
    await Promise.race([this.probe(), sleep(startTimeout, undefined, { ref: false })]);
    const { failure } = this;
    if (failure) this.report(failure);
  }

  /**
   * Records that the store has failed, or that it is slow. Nothing replaces a final failure. Once stopped, only a final
   * failure matters: the plants that were acknowledged last may be lost.
   */
  recordFailure(failure: StoreFailure): void {
    const isFinal = failure.reach === 'process';
    if (this.isFinal || (this.stopping.signal.aborted && !isFinal)) return;
    this.latestFailure = failure;
    this.report(failure);
    if (isFinal) this.restart.resolve(failure);
  }

  /** Reopens the store if it has failed, and probes it. Does nothing while it works. Called every half second. */
  async recover(): Promise<void> {
    if (this.failure) await this.probe();
  }

  /**
   * Opens the store, does what a commit does, and records the result. Does nothing while a probe is in progress, or
   * after a final failure.
   */
  async probe(): Promise<void> {
    if (this.isProbing || this.isFinal) return;
    this.isProbing = true;
    const { failure } = this;
    try {
      await this.open();
      const start = performance.now();
      await this.driver.probe();
      if (performance.now() - start >= SLOW_COMMIT_MS) throw createSlowFailure(this.driver);
      // The success says nothing about a failure since the probe began, which may be final.
      if (this.failure === failure) this.recordSuccess();
    } catch (error) {
      this.recordFailure(error as StoreFailure);
    }
    this.isProbing = false;
  }

  private get isFinal(): boolean {
    return this.failure?.reach === 'process';
  }

  /** From now on, no store is opened, and only a final failure counts. */
  stop(): void {
    this.stopping.abort();
  }

  private open(): Promise<void> {
    const { signal } = this.stopping;
    return this.driver.open(signal, (failure) => {
      this.recordFailure(failure);
    });
  }

  private recordSuccess(): void {
    this.latestFailure = undefined;
    if (this.reported.size > 0) this.logger.log(`${this.driver.name}: in use again.`);
    this.reported.clear();
  }

  private report({ message, code }: StoreFailure): void {
    if (this.reported.has(message)) return;
    this.reported.add(message);
    this.logger.error(message, ...(code === undefined ? [] : [{ code }]));
  }
}

/**
 * Creates the failure of a store whose commits or probes are slow. It concerns the plants that come next: none is lost.
 */
export function createSlowFailure({ name }: StoreDriver): StoreFailure {
  return new StoreFailure(
    'notStored',
    `${name}: a commit takes 2 seconds or more. Check whether the disk or the database is overloaded.`,
  );
}
