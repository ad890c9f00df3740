import type { OnApplicationShutdown } from '@nestjs/common';
import { PlantStoreError, UnavailableError } from '../errors/errors';
import { INT64_MAX, INT64_MIN } from '../int64';
import type { Plant } from '../plant';
import { type EndedBatch, type InsertOutcome, PlantsRepository } from '../plants.repository';
import { GroupCommit } from './group-commit';
import type { KeyedPlant } from './keyed-plant';
import type { PlantRange, StoreDriver } from './store-driver';
import { StoreHealth } from './store-health';

/** Stores plants in a database with group commit, and rejects them while the database is failing. */
export class DatabasePlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly driver: StoreDriver;
  private readonly observers: ((batch: EndedBatch) => void)[] = [];
  private readonly commits = new GroupCommit(
    (batch) => this.commit(batch),
    (batch) => {
      for (const observe of this.observers) observe(batch);
    },
  );
  private readonly health = new StoreHealth(
    () => this.driver,
    () => this.commits.waitingSince,
  );

  /** @param createDriver creates the driver, which reports failures of the store to the given health */
  constructor(createDriver: (health: StoreHealth) => StoreDriver) {
    super();
    this.driver = createDriver(this.health);
  }

  /** Describes the database for an operator. */
  get name(): string {
    return this.driver.name;
  }

  /**
   * Opens the store.
   *
   * @throws StoreOpenError when the store can never be opened
   */
  start(): Promise<void> {
    return this.health.start();
  }

  insert(plant: Plant, keyDigest?: string): Promise<InsertOutcome> {
    // If the store is unresponsive, further plants would only queue up behind those that are waiting.
    if (this.health.isStalled) return Promise.reject(new UnavailableError());
    this.health.watch();
    return this.commits.submit({ ...plant, keyDigest });
  }

  async find(id: bigint): Promise<Plant | undefined> {
    const [plant] = await this.read({ from: id, to: id, limit: 1 });
    return plant;
  }

  async page(after: bigint | undefined, limit: number): Promise<readonly Plant[]> {
    if (after === INT64_MAX) return [];
    const from = after === undefined ? INT64_MIN : after + 1n;
    return this.read({ from, to: INT64_MAX, limit });
  }

  override isReady(): boolean {
    return this.health.isReady;
  }

  override currentFailure(): Error | undefined {
    return this.health.failure;
  }

  override queueLength(): number {
    return this.commits.queueLength;
  }

  override observeBatches(observer: (batch: EndedBatch) => void): void {
    this.observers.push(observer);
  }

  override isFull(): boolean {
    return this.commits.isFull;
  }

  /**
   * Commits the plants accepted so far, then closes the store. Nest calls it once HTTP has stopped. It takes
   * at most 20 seconds longer than the driver needs to close.
   */
  async onApplicationShutdown(): Promise<void> {
    const hasEnded = await this.commits.close();
    this.health.stop();
    const closing = this.driver.close();
    // The driver may wait for a batch that never ends.
    if (hasEnded) await closing;
  }

  private async read(range: PlantRange): Promise<readonly Plant[]> {
    const cause = this.health.failure;
    if (cause) throw new UnavailableError({ cause });
    return this.driver.read(range);
  }

  private async commit(
    batch: readonly KeyedPlant[],
  ): Promise<readonly (InsertOutcome | PlantStoreError)[]> {
    const cause = this.health.failure;
    if (cause) throw new UnavailableError({ cause });
    try {
      const outcomes = await this.driver.commit(batch);
      const errors = outcomes.filter((outcome) => outcome instanceof PlantStoreError);
      if (errors.length < outcomes.length) this.health.recordCommit();
      else if (errors[0]) this.health.recordFailedCommit(errors[0]);
      return outcomes;
    } catch (error) {
      this.health.recordFailedCommit(error as Error);
      throw error;
    }
  }
}
