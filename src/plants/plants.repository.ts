import type { Plant } from './plant';

/**
 * What became of a plant:
 *
 * - `created`: it is stored now.
 * - `replayed`: it was stored before, with this idempotency key and the same content.
 * - `keyReused`: its id was stored before with this key, but with other content.
 * - `taken`: its id was stored before, with another key or without one.
 */
export type Insertion = 'created' | 'replayed' | 'keyReused' | 'taken';

/** A batch of plants whose commit has ended, whether it succeeded or not. */
export interface EndedBatch {
  readonly size: number;
  /** How long the commit took, in milliseconds. */
  readonly duration: number;
}

/** Stores plants: the port that every store implements, and its injection token. */
export abstract class PlantsRepository {
  /**
   * Stores a plant unless its id is taken. Of any number of concurrent calls with one id, in any
   * number of processes on the same store, exactly one stores its plant.
   *
   * @param keyDigest the SHA-256 of the idempotency key and its caller, in 64 lowercase hexadecimal
   *   digits, which is stored with the plant in one transaction. A repository of a host may ignore it:
   *   then a repeated creation is `taken`.
   * @returns once the stored plant is durable, whoever stored it
   * @throws UnavailableError when nothing was stored by this call
   * @throws OutcomeUnknownError when the plant may or may not be stored
   */
  abstract insert(plant: Plant, keyDigest?: string): Promise<Insertion>;

  /**
   * The plant with an id; undefined when there is none.
   *
   * @throws UnavailableError when the store does not answer
   */
  abstract find(id: bigint): Promise<Plant | undefined>;

  /**
   * A page of plants in id order. To bound memory, it should end early when texts are long.
   *
   * @param after the id before the first; undefined begins with the smallest
   * @param limit how many at most, 1 or more; a page may be shorter, but is empty only at the end
   * @throws UnavailableError when the store does not answer
   */
  abstract page(after: bigint | undefined, limit: number): Promise<readonly Plant[]>;

  /** Whether the store would probably accept a plant now, by what it has observed: for readiness probes. */
  isReady(): boolean {
    return true;
  }

  /**
   * Why the store takes no plants, for the operator; undefined while it does, or when that is not known.
   * The store logs it: lines about requests that it refuses for this reason do not repeat it.
   */
  findFault(): Error | undefined {
    return undefined;
  }

  /** How many plants wait for their batch to begin; 0 for a store without a queue. */
  queueLength(): number {
    return 0;
  }

  /** Tells an observer about each batch that ends from now on; not for a store without batches. */
  observeBatches(_observer: (batch: EndedBatch) => void): void {
    // A store that commits one plant at a time has no batches.
  }

  /** Whether a plant inserted now would be refused because too many are waiting. */
  isFull(): boolean {
    return false;
  }
}

/** How many plants a page has at most. Our stores end it after a mebibyte of text too. */
const PAGE_LENGTH = 1000;

/**
 * All plants in id order, page by page; the next page is read while the caller uses this one. A plant that
 * is created meanwhile may be among them.
 */
export async function* pagesOf(plants: PlantsRepository): AsyncGenerator<readonly Plant[], void> {
  let next = plants.page(undefined, PAGE_LENGTH);
  for (;;) {
    const page = await next;
    if (page.length === 0) return;
    next = plants.page(page.at(-1)?.id, PAGE_LENGTH);
    // If the caller stops here, nobody waits for the next page.
    next.catch(() => undefined);
    yield page;
  }
}
