import type { OnApplicationShutdown } from '@nestjs/common';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import { INT64_MAX, INT64_MIN } from '../plant/int64';
import type { Plant } from '../plant/plant';
import { type EndedBatch, type InsertOutcome, PlantsRepository } from '../plants.repository';
import { GroupCommit } from './group-commit';
import { type PlantRange, type StoreDriver, StoreFailure } from './store-driver';
import { createSlowFailure, SLOW_COMMIT_MS, StoreHealth } from './store-health';

/** How often the repository checks whether a plant has waited too long, and tries to recover a failed store. */
const CHECK_INTERVAL_MS = 500;

/** Stores plants in a database with group commit, and rejects them while the database is failing or slow. */
export class DatabasePlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly commits: GroupCommit;
  private readonly health: StoreHealth;
  private timer: NodeJS.Timeout | undefined;
  /** Whether plants were rejected or locked since the last check. */
  private isProbeDue = false;

  constructor(private readonly driver: StoreDriver) {
    super();
    this.commits = new GroupCommit(driver);
    this.health = new StoreHealth(driver);
    this.commits.observers.push(({ failure }) => {
      if (failure) this.reportFailure(failure);
    });
  }

  /** Opens the store, and checks from then on whether it works. @throws OptionError when it can never be opened */
  async start(): Promise<void> {
    await this.health.start();
    this.timer = setInterval(() => {
      this.checkHealth();
    }, CHECK_INTERVAL_MS).unref();
  }

  async insert(plant: Plant, keyDigest?: string): Promise<InsertOutcome> {
    // Before the queue: the failure is the cause that the log shows.
    const cause = this.health.failure;
    if (cause) throw new UnavailableError({ cause });
    if (!this.commits.canAccept) throw new UnavailableError();
    try {
      return await this.commits.submit({ ...plant, keyDigest });
    } catch (error) {
      throw error instanceof StoreFailure ? toPlantStoreError(error) : error;
    }
  }

  async find(id: bigint): Promise<Plant | undefined> {
    const [plant] = await this.read({ from: id, to: id, limit: 1 });
    return plant;
  }

  async page(after: bigint | undefined, limit: number): Promise<readonly Plant[]> {
    // A database cannot compare ids that do not fit 64 bits.
    if (after !== undefined && after >= INT64_MAX) return [];
    const from = after === undefined || after < INT64_MIN ? INT64_MIN : after + 1n;
    return this.read({ from, to: INT64_MAX, limit });
  }

  override currentFailure(): StoreFailure | undefined {
    return this.health.failure;
  }

  override get restartNeeded(): Promise<StoreFailure> {
    return this.health.restartNeeded;
  }

  override queueLength(): number {
    return this.commits.queueLength;
  }

  override logBytes(): Promise<number> {
    return this.driver.logBytes?.() ?? super.logBytes();
  }

  override observeBatches(observer: (batch: EndedBatch) => void): void {
    this.commits.observers.push(observer);
  }

  override canAccept(): boolean {
    // A request that a failure rejects gets the failure as its cause.
    return this.commits.canAccept || !this.isReady();
  }

  /**
   * Commits the plants accepted so far, then closes the store. Nest calls it once HTTP has stopped. It takes at most 20
   * seconds longer than the driver needs to close, and that of SQLite waits for a disk that hangs: an exit would wait
   * for it, too, and could not be ended by a time-out.
   */
  async onApplicationShutdown(): Promise<void> {
    // Until then, a store that fails is recovered for the plants that wait.
    await this.commits.close();
    clearInterval(this.timer);
    this.health.stop();
    try {
      await this.driver.close();
    } catch (error) {
      this.health.recordFailure(error as StoreFailure);
    }
  }

  /** Tells the health of each batch that failed, whether or not its plants still waited for it. */
  private reportFailure(failure: StoreFailure): void {
    const { kind, reach } = failure;
    if (reach !== 'batch') this.health.recordFailure(failure);
    // The store may work all the same. A probe for each of many plants would slow others down: it opens a session.
    else if (kind === 'row' || kind === 'locked') this.isProbeDue = true;
    // A session is lost. If the store is lost, too, a probe at once keeps further batches from failing.
    else void this.health.probe();
  }

  private checkHealth(): void {
    const { stalledSince } = this.commits;
    const isSlow = stalledSince !== undefined && performance.now() - stalledSince >= SLOW_COMMIT_MS;
    if (isSlow) {
      this.health.recordFailure(createSlowFailure(this.driver));
    } else if (this.isProbeDue) {
      this.isProbeDue = false;
      void this.health.probe();
    } else {
      void this.health.recover();
    }
  }

  private read(range: PlantRange): Promise<Plant[]> {
    return this.driver.read(range).catch((cause: unknown) => {
      throw new UnavailableError({ cause });
    });
  }
}

/** Returns the error of a request whose plant failed. Its cause is the failure. */
function toPlantStoreError(failure: StoreFailure): PlantStoreError {
  const options = { cause: failure };
  switch (failure.kind) {
    case 'row':
      return new PlantStoreError('internal', undefined, { ...options, outcome: 'rejected' });
    case 'locked':
    case 'notStored':
      return new UnavailableError(options);
    case 'unknown':
      return new OutcomeUnknownError(options);
  }
}
