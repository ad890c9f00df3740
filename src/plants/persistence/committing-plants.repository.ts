import type { OnApplicationShutdown } from '@nestjs/common';
import { PlantStoreError, UnavailableError } from '../errors/errors';
import { INT64_MAX, INT64_MIN } from '../int64';
import { contentOf, type Plant } from '../plant';
import { type EndedBatch, type Insertion, PlantsRepository } from '../plants.repository';
import { GroupCommit } from './group-commit';
import type { KeyedPlant } from './keyed-plant';
import type { PlantRange, StoreDriver } from './store-driver';
import { StoreHealth } from './store-health';

/** Stores plants in a database, in commits that they share, and only while the database works. */
export class CommittingPlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly driver: StoreDriver;
  private readonly observers: ((batch: EndedBatch) => void)[] = [];
  private readonly commits = new GroupCommit(
    (batch) => this.commit(batch),
    (batch, waited) => {
      for (const observe of this.observers) observe(batch);
      this.health.answer(waited);
    },
  );
  private readonly health = new StoreHealth(
    () => this.driver,
    () => this.commits.waitingSince,
  );

  /** @param makeDriver makes the driver, which tells the health about faults */
  constructor(makeDriver: (health: StoreHealth) => StoreDriver) {
    super();
    this.driver = makeDriver(this.health);
  }

  /** The database, for an operator. */
  get name(): string {
    return this.driver.name;
  }

  /** @throws StoreOpenError when the store can never be opened */
  start(): Promise<void> {
    return this.health.start();
  }

  insert(plant: Plant, keyDigest?: string): Promise<Insertion> {
    // The store may have fallen silent. Then further creations would only wait too.
    if (this.health.isSilent) return Promise.reject(new UnavailableError());
    return this.commits.submit({ id: plant.id, ...contentOf(plant), keyDigest });
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

  override findFault(): Error | undefined {
    return this.health.fault;
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

  /** Commits the plants accepted so far, then closes the store. Nest calls it once HTTP has stopped. */
  async onApplicationShutdown(): Promise<void> {
    await this.commits.close();
    this.health.stop();
    await this.driver.close();
  }

  private async read(range: PlantRange): Promise<readonly Plant[]> {
    const cause = this.health.fault;
    if (cause) throw new UnavailableError({ cause });
    return this.driver.read(range);
  }

  private async commit(
    batch: readonly KeyedPlant[],
  ): Promise<readonly (Insertion | PlantStoreError)[]> {
    const cause = this.health.refusal;
    if (cause) throw new UnavailableError({ cause });
    const outcomes = await this.driver.commit(batch);
    if (outcomes.some((outcome) => !(outcome instanceof PlantStoreError))) this.health.confirm();
    return outcomes;
  }
}
