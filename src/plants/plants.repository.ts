import type { Plant } from './plant/plant';

/**
 * The outcome of an insert:
 *
 * - `created`: the plant is now stored.
 * - `replayed`: the plant was already stored, with this idempotency key and the same content.
 * - `keyReused`: a plant with this id and this key was already stored, but its content differs.
 * - `taken`: a plant with this id was already stored, with another key or without one.
 */
export type InsertOutcome = 'created' | 'replayed' | 'keyReused' | 'taken';

/** A batch of plants whose commit has succeeded or failed. */
export interface EndedBatch {
  readonly size: number;
  /** How long the commit took, in milliseconds. */
  readonly duration: number;
}

/** Stores plants. Every store extends this class, which is also its injection token. */
export abstract class PlantsRepository {
  /**
   * Stores a plant unless a plant with its id already exists. If several calls or processes insert the same id at the
   * same time, exactly one of them stores its plant.
   * @param keyDigest the SHA-256 of the idempotency key and its caller, in 64 lowercase hexadecimal digits, stored in
   *   the same transaction as the plant. Your own repository may ignore it: then a retry is `taken`.
   * @returns resolves once the plant with this id is durable, whether this call or another one stored it
   * @throws UnavailableError when nothing was stored by this call
   * @throws OutcomeUnknownError when the plant may or may not be stored
   */
  abstract insert(plant: Plant, keyDigest?: string): Promise<InsertOutcome>;

  /**
   * Reads the plant with an id. Returns undefined if there is none.
   * @throws UnavailableError when the store does not respond
   */
  abstract find(id: bigint): Promise<Plant | undefined>;

  /**
   * Reads a page of plants in id order, which is empty only at the end.
   * @param after the page starts after this id; undefined starts with the smallest id
   * @param limit the maximum number of plants, 1 or more; a page may be shorter
   * @throws UnavailableError when the store does not respond
   */
  abstract page(after: bigint | undefined, limit: number): Promise<readonly Plant[]>;

  /** Whether the store is likely to accept a plant now, judging by recent commits. Used for readiness probes. */
  isReady(): boolean {
    return this.currentFailure() === undefined;
  }

  /**
   * Why the store does not accept plants; undefined while it accepts them. The store logs it, so log lines about rejected
   * requests do not repeat it.
   */
  currentFailure(): Error | undefined {
    return undefined;
  }

  /** Resolves to the reason when only a restart of the process can make the store usable again. */
  get restartNeeded(): Promise<Error> {
    return new Promise(() => undefined);
  }

  /** The number of plants waiting for their commit to begin; 0 for a store without a queue. */
  queueLength(): number {
    return 0;
  }

  /** The size of the write-ahead log in bytes; 0 for a store without one, or whose log is the business of its server. */
  logBytes(): Promise<number> {
    return Promise.resolve(0);
  }

  /** Calls the observer after each commit from now on. A store without batches never calls it. */
  observeBatches(_observer: (batch: EndedBatch) => void): void {
    // A store that commits one plant at a time has no batches.
  }

  /** Whether a plant inserted now would be queued. Not if the queue is full or closed. */
  canAccept(): boolean {
    return true;
  }
}

/** The maximum number of plants per page. */
const MAX_PAGE_LENGTH = 250;

/**
 * Reads all plants in id order, page by page. A plant that is created while the pages are read may or may not be
 * included.
 */
export async function* pagesOf(plants: PlantsRepository): AsyncGenerator<readonly Plant[], void> {
  let page = await plants.page(undefined, MAX_PAGE_LENGTH);
  while (page.length > 0) {
    yield page;
    page = await plants.page(page.at(-1)?.id, MAX_PAGE_LENGTH);
  }
}
