import type { PlantStoreError } from '../errors/errors';
import { OperatorError } from '../errors/operator.error';
import type { Plant } from '../plant';
import type { InsertOutcome } from '../plants.repository';
import type { KeyedPlant } from './keyed-plant';

/** The plants to read. */
export interface PlantRange {
  /** The smallest id, inclusive. */
  readonly from: bigint;
  /** The largest id, inclusive. */
  readonly to: bigint;
  /** The maximum number of plants, 1 or more. */
  readonly limit: number;
}

/** A store that is open. */
export interface OpenStore {
  /** Resolves to the reason if the store fails while no request uses it. Never rejects. */
  readonly lost: Promise<Error>;
}

/** Only a restart of the process can make the store usable again. The message states why, and what to do. */
export class RestartNeededError extends OperatorError {}

/**
 * A database, as its repository uses it. The class of an error tells the repository what has happened. A driver
 * knows nothing of its repository.
 */
export interface StoreDriver {
  /** Describes the database for an operator. */
  readonly name: string;
  /**
   * How long startup waits for a database that may become available later, in milliseconds; undefined if it
   * must be available at once.
   */
  readonly startTimeout?: number;
  /** How many batches {@link commit} may commit at the same time. */
  readonly maxBatches: number;

  /**
   * Opens the store, or reopens it if it has failed. Does nothing if it is usable.
   *
   * @returns the same object until the store is reopened
   * @throws OptionError at startup, if the store can never be opened
   * @param signal aborted when the repository closes: then a store must not be opened again
   * @throws Error that says why the store cannot be used, or that the signal was aborted
   */
  open(signal: AbortSignal): Promise<OpenStore>;

  /**
   * Commits plants together. Resolves to one outcome or error each, in order. A plant that the database alone
   * rejects has the error `internal`, with the reason as its cause.
   *
   * @throws UnavailableError when nothing was stored. The cause is the reason
   * @throws OutcomeUnknownError when the plants may be stored. The cause is the reason
   */
  commit(batch: readonly KeyedPlant[]): Promise<readonly (InsertOutcome | PlantStoreError)[]>;

  /**
   * Reads plants in id order, as many as the range contains, up to its limit.
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

  /** @throws UnavailableError when the disk fails. The plants that were acknowledged are stored all the same */
  close(): Promise<void>;
}
