import type { Plant } from '../../plant';
import type { KeyedPlant } from '../plant-batches';

/** The worker's settings. */
export interface SqliteWorkerData {
  /** The database file, absolute. */
  readonly path: string;
  /**
   * The identity of the store that is in use. Undefined at the start of the service, when a missing
   * store is created and an old one migrated.
   */
  readonly identity: string | undefined;
}

/** Plants to insert in one transaction. */
export interface SqliteBatch {
  readonly plants: readonly KeyedPlant[];
}

/** A query for plants in id order. */
export interface SqliteQuery {
  /** The smallest id to return. */
  readonly from: bigint;
  /** The largest id to return. */
  readonly to: bigint;
  /** The maximum number of plants. */
  readonly limit: number;
  /** The reply ends after the plant that brings its text to more characters than this. */
  readonly textLimit: number;
}

/**
 * A request to the worker: insert a batch, read plants, probe whether the database can be written to, or
 * close it and end.
 */
export type SqliteRequest = SqliteBatch | SqliteQuery | 'probe' | 'close';

/** The reply to a batch. */
export type SqliteCommitReply =
  | {
      /** Committed and synced. */
      readonly result: 'committed';
      /** 1 for each plant that was inserted, 0 for one whose id is taken. */
      readonly inserted: Uint8Array;
      /** By place in the batch: the stored plant with the id and the key of a plant not inserted. */
      readonly stored: ReadonlyMap<number, KeyedPlant>;
    }
  /** Nothing of the batch is stored or will be. */
  | { readonly result: 'refused'; readonly reason: string }
  /** The batch may be stored, or may turn out to be stored after a crash. */
  | { readonly result: 'unknown'; readonly reason: string };

/** The reply to a query: the plants, or why reading failed. */
export type SqlitePlants = readonly Plant[] | { readonly reason: string };

/** The reply to a probe: whether the database can be written to. */
export type SqliteStatusReply = { readonly result: 'ok' } | SqliteFailure;

/** The worker's first message: the store's identity, or why it cannot be used. */
export type SqliteStartReply = { readonly result: 'ok'; readonly identity: string } | SqliteFailure;

interface SqliteFailure {
  readonly result: 'failed';
  readonly reason: string;
}
