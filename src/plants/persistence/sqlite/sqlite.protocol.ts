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
  /** Milliseconds to wait for another process's lock; a second when undefined. */
  readonly lockTimeout?: number | undefined;
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

/** Insert a batch, read plants, probe whether the database can be written to, or close it and end. */
export type SqliteRequest = SqliteBatch | SqliteQuery | 'probe' | 'close';

/** The reply to a batch, once it is committed and synced. */
export interface SqliteInsertion {
  /** 1 for each plant that was inserted, 0 for one whose id is taken. */
  readonly inserted: Uint8Array;
  /** By place in the batch: the stored plant with the id and the key of a plant not inserted. */
  readonly stored: ReadonlyMap<number, KeyedPlant>;
}

/** The reply to a request. The worker's first message is one too, with the identity of the store. */
export type SqliteReply =
  | { readonly result: 'done'; readonly value: unknown }
  /** `refused`: nothing is stored or will be. `unknown`: a batch may be stored, perhaps after a crash. */
  | { readonly result: 'refused' | 'unknown'; readonly reason: string };
