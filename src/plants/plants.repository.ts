import type { Plant } from './plant';

/** Stores plants: the port that every store implements, and its injection token. */
export abstract class PlantsRepository {
  /**
   * Stores a plant unless its id is taken. Of any number of concurrent calls with one id, in any
   * number of processes on the same store, exactly one stores its plant.
   *
   * @returns true once the plant is durable; false when the id is taken, and the stored plant is
   *   unchanged
   * @throws UnavailableError when the plant was refused before anything was stored
   * @throws OutcomeUnknownError when the plant may or may not be stored
   */
  abstract insert(plant: Plant): Promise<boolean>;

  /**
   * The plant with an id; undefined when there is none.
   *
   * @throws UnavailableError when the store does not answer
   */
  abstract find(id: bigint): Promise<Plant | undefined>;

  /**
   * A page of plants in id order.
   *
   * @param after the id before the first; undefined begins with the smallest
   * @param limit how many at most, 1 or more; a page may be shorter, but is empty only at the end
   * @throws UnavailableError when the store does not answer
   */
  abstract page(after: bigint | undefined, limit: number): Promise<readonly Plant[]>;

  /**
   * Whether the store would probably accept a plant now. A readiness probe asks this; the answer comes
   * from what the store has observed, at no cost.
   */
  isReady(): boolean {
    return true;
  }

  /** How many plants wait for their batch to begin; 0 for a store without a queue. */
  queueLength(): number {
    return 0;
  }

  /** Whether a plant inserted now would be refused because too many are waiting. */
  isFull(): boolean {
    return false;
  }
}
