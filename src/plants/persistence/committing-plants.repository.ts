import type { OnApplicationShutdown } from '@nestjs/common';
import type { PlantStoreError } from '../errors/errors';
import type { Plant } from '../plant';
import { type Insertion, PlantsRepository } from '../plants.repository';
import type { CircuitBreaker } from './circuit-breaker';
import { GroupCommit } from './group-commit';
import { type KeyedPlant, plantBatches } from './plant-batches';

/** A repository whose plants share commits. It is ready while its store works and answers in time. */
export abstract class CommittingPlantsRepository
  extends PlantsRepository
  implements OnApplicationShutdown
{
  protected readonly commits = new GroupCommit<KeyedPlant, Insertion>({
    ...plantBatches,
    commit: (batch) => this.commit(batch),
    probe: () => this.probe(),
  });
  protected abstract readonly breaker: CircuitBreaker;

  insert({ id, name, tag }: Plant, keyDigest?: string): Promise<Insertion> {
    return this.commits.submit({ id, name, tag, keyDigest });
  }

  override isReady(): boolean {
    return this.findFault() === undefined && !this.commits.isLate;
  }

  override findFault(): Error | undefined {
    return this.breaker.fault;
  }

  override queueLength(): number {
    return this.commits.queueLength;
  }

  override isFull(): boolean {
    return this.commits.isFull;
  }

  /** Commits the plants accepted so far, then closes the store. Nest calls it once HTTP has stopped. */
  async onApplicationShutdown(): Promise<void> {
    await this.commits.close();
    this.breaker.stop();
    await this.close();
  }

  /** Commits a batch, as {@link GroupCommit} expects it. */
  protected abstract commit(
    batch: readonly KeyedPlant[],
  ): Promise<readonly (Insertion | PlantStoreError)[]>;

  /** Takes as long as a commit, and stores nothing. */
  protected abstract probe(): Promise<void>;

  protected abstract close(): Promise<void>;
}
