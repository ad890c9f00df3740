import { OperatorError } from '../errors/operator.error';
import type { Plant } from '../plant/plant';
import type { InsertOutcome } from '../plants.repository';
import type { KeyedPlant } from './idempotency';

/** The plants whose ids are in a range, bounds included. */
export interface PlantRange {
  readonly from: bigint;
  readonly to: bigint;
  /** The maximum number of plants, 1 or more. */
  readonly limit: number;
}

/**
 * What a failure means for its plants:
 *
 * - `row`: the database rejected this plant.
 * - `locked`: nothing was stored, because the id of the plant is locked in the database, perhaps by somebody else who
 *   has inserted it and not committed.
 * - `notStored`: nothing was stored.
 * - `unknown`: the plants may be stored.
 */
export type FailureKind = 'row' | 'locked' | 'notStored' | 'unknown';

/**
 * What a failure means for the store:
 *
 * - `batch`: nothing. It concerns plants of its batch, and the next one may succeed. A probe determines whether the
 *   store works.
 * - `store`: the store has failed. It may work again later.
 * - `process`: the failure is final: only a restart of the process can make the store usable again.
 */
export type FailureReach = 'batch' | 'store' | 'process';

/** Details of a {@link StoreFailure}. */
export interface FailureOptions extends ErrorOptions {
  /** The database's code of the error. */
  readonly code?: string | number | undefined;
  /** By default, `batch` for a row that was rejected or locked, and `store` otherwise. */
  readonly reach?: FailureReach | undefined;
}

/** A failure of a store. Its message is the reason, for the operator. */
export class StoreFailure extends OperatorError {
  override readonly name = 'StoreFailure';
  readonly code: string | number | undefined;
  readonly reach: FailureReach;

  constructor(
    readonly kind: FailureKind,
    reason: string,
    { code, reach, ...options }: FailureOptions = {},
  ) {
    super(reason, options);
    this.code = code;
    this.reach = reach ?? (kind === 'row' || kind === 'locked' ? 'batch' : 'store');
  }
}

/** The result of inserting one plant of a batch. */
export type InsertResult = InsertOutcome | StoreFailure;

/**
 * A database, as its repository uses it. The kind and the reach of a failure tell the repository what has happened. A
 * driver knows nothing of its repository.
 */
export interface StoreDriver {
  readonly name: string;
  /** How long startup waits for the database, in milliseconds; undefined if it must be available at once. */
  readonly startTimeout?: number;
  /** How many batches {@link commit} may commit at the same time. */
  readonly maxBatches: number;

  /**
   * Opens the store, or reopens it if it has failed. Does nothing if it is usable.
   * @param signal aborted when the repository closes: then a store must not be opened again
   * @param onLost called when the store fails while no request uses it
   * @throws OptionError at startup, if the store can never be opened
   * @throws StoreFailure when the store cannot be used, or the signal was aborted
   */
  open(signal: AbortSignal, onLost: (failure: StoreFailure) => void): Promise<void>;

  /**
   * Commits plants together. Resolves to one result each, in order.
   * @throws StoreFailure when all of them failed
   */
  commit(batch: readonly KeyedPlant[]): Promise<readonly InsertResult[]>;

  /** Reads the plants of a range in id order. @throws StoreFailure when the store does not respond */
  read(range: PlantRange): Promise<Plant[]>;

  /**
   * Does what a commit does, with the same privileges, and stores nothing.
   * @throws StoreFailure when a commit would fail
   */
  probe(): Promise<void>;

  /** Measures the write-ahead log, if the driver writes one. Responds in time while the disk hangs. */
  logBytes?(): Promise<number>;

  /** @throws StoreFailure when the disk fails. The plants that were acknowledged are stored all the same */
  close(): Promise<void>;
}
