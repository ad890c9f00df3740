import { type InsertResult, StoreFailure } from './store-driver';

/** How long an id is suspect after it was locked. */
const SUSPECT_TIME_MS = 10_000;

/**
 * The ids that were locked in the database a moment ago. An insert of one waits for a lock of somebody else, and delays
 * its whole batch. An id is suspect until a plant with it has another outcome, and for at most 10 seconds.
 */
export class SuspectIds {
  /** The time until which each id is suspect, by `performance.now()`. The oldest ones come first. */
  private readonly endTimes = new Map<bigint, number>();

  get isEmpty(): boolean {
    return this.endTimes.size === 0;
  }

  has(id: bigint): boolean {
    return this.endTimes.has(id);
  }

  /** Records the result of a plant with this id. */
  record(id: bigint, result: InsertResult | undefined): void {
    this.endTimes.delete(id);
    if (result instanceof StoreFailure && result.kind === 'locked') {
      this.endTimes.set(id, performance.now() + SUSPECT_TIME_MS);
    }
  }

  /** Forgets the ids that were locked too long ago. */
  forgetExpired(): void {
    for (const [id, endTime] of this.endTimes) {
      if (endTime > performance.now()) return;
      this.endTimes.delete(id);
    }
  }
}
