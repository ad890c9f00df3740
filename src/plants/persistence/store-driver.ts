import type { PlantStoreError } from '../errors/errors';
import type { Plant } from '../plant';
import type { Insertion } from '../plants.repository';
import type { KeyedPlant } from './keyed-plant';

/** Characters or bytes of text after which a page ends early, to bound its memory. */
export const PAGE_TEXT_LIMIT = 2 ** 20;

/** Which plants to read. */
export interface PlantRange {
  /** Both inclusive. */
  readonly from: bigint;
  readonly to: bigint;
  /** How many at most, 1 or more. */
  readonly limit: number;
}

/**
 * A database, as its repository uses it. A driver tells the {@link StoreHealth} that it was made with
 * about each fault of the store.
 */
export interface StoreDriver {
  /** The database, for an operator. */
  readonly name: string;
  /**
   * Milliseconds that a start waits for a database that may come later; undefined for one that must be
   * there.
   */
  readonly startTimeout?: number;

  /**
   * Opens the store, or opens it again after a fault, and shows that it accepts writes.
   *
   * @throws StoreOpenError at the first time, if the store can never be opened
   * @throws Error saying why the store cannot be used, and as soon as the signal is aborted
   */
  open(signal: AbortSignal): Promise<void>;

  /**
   * Commits plants together. Resolves to one outcome or error each, in order.
   *
   * @throws UnavailableError when nothing was stored
   * @throws OutcomeUnknownError when they may be stored
   */
  commit(batch: readonly KeyedPlant[]): Promise<readonly (Insertion | PlantStoreError)[]>;

  /**
   * Reads plants in id order. A page of long texts ends early, but is empty only where there are none.
   *
   * @throws UnavailableError when the store does not answer
   */
  read(range: PlantRange): Promise<Plant[]>;

  /** Takes as long as a commit, and stores nothing. It rejects when the store accepts no writes. */
  probe(): Promise<void>;

  close(): Promise<void>;
}
