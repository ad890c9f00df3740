import type { Plant } from './plant';

/** Where plants are kept: the port of every store, and its injection token. */
export abstract class PlantsRepository {
  /**
   * Keeps a plant unless its id is taken. Of any number of concurrent calls with one id, in any
   * number of processes on the same store, exactly one keeps its plant.
   *
   * @returns whether it was kept, durably; false leaves what has the id as it was
   * @throws UnavailableError when the plant was refused before anything was stored
   * @throws OutcomeUnknownError when the plant may or may not be stored
   */
  abstract insert(plant: Plant): Promise<boolean>;

  /**
   * The plant that has an id.
   *
   * @throws UnavailableError when the store does not answer
   */
  abstract find(id: bigint): Promise<Plant | undefined>;

  /**
   * The next plants in id order.
   *
   * @param after the id before the first; undefined begins with the smallest
   * @param limit how many at most, 1 or more; a page may be shorter, but is empty only at the end
   * @throws UnavailableError when the store does not answer
   */
  abstract page(after: bigint | undefined, limit: number): Promise<readonly Plant[]>;

  /**
   * Whether a plant inserted now would likely be kept: what a readiness probe asks. It answers from
   * what the store has seen last, at no cost.
   */
  isReady(): boolean {
    return true;
  }

  /** How many plants wait to be handed to the store; 0 for a store that queues nothing. */
  queueLength(): number {
    return 0;
  }

  /** Whether a plant inserted now would be refused because too many wait. */
  isFull(): boolean {
    return false;
  }
}
