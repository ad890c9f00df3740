import type { PlantStoreError } from '../errors/errors';
import type { Plant } from '../plant';
import type { InsertOutcome } from '../plants.repository';
import type { KeyedPlant } from './keyed-plant';

/**
 * The size of names and tags, in characters (SQLite) or bytes (PostgreSQL), after which a page ends early to
 * limit memory.
 */
export const PAGE_TEXT_LIMIT = 2 ** 20;

/** The plants to read. */
export interface PlantRange {
  /** The smallest id, inclusive. */
  readonly from: bigint;
  /** The largest id, inclusive. */
  readonly to: bigint;
  /** The maximum number of plants, 1 or more. */
  readonly limit: number;
}

/**
 * A database, as its repository uses it. A driver reports each failure of the store to the
 * {@link StoreHealth} that it was created with.
 */
export interface StoreDriver {
  /** Describes the database for an operator. */
  readonly name: string;
  /**
   * How long startup waits for a database that may become available later, in milliseconds; undefined if it
   * must be available at once.
   */
  readonly startTimeout?: number;

  /**
   * Opens the store, or reopens it after a failure. After a final failure, it throws every time.
   *
   * @throws StoreOpenError at startup, if the store can never be opened
   * @throws Error saying why the store cannot be used, and as soon as the signal is aborted
   */
  open(signal: AbortSignal): Promise<void>;

  /**
   * Commits plants together. Resolves to one outcome or error each, in order.
   *
   * @throws UnavailableError when nothing was stored
   * @throws OutcomeUnknownError when the plants may be stored
   */
  commit(batch: readonly KeyedPlant[]): Promise<readonly (InsertOutcome | PlantStoreError)[]>;

  /**
   * Reads plants in id order. A page may end early if names and tags are long. It is empty only if
   * there are no more plants.
   *
   * @throws UnavailableError when the store does not respond
   */
  read(range: PlantRange): Promise<Plant[]>;

  /**
   * Does what a commit does, with the same privileges, and stores nothing.
   *
   * @throws Error when a commit would fail
   */
  probe(): Promise<void>;

  close(): Promise<void>;
}
