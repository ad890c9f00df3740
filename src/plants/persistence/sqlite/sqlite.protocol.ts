import type { KeyedPlant } from '../plant-batches';

export interface SqliteWorkerData {
  /** The database file, absolute. */
  readonly path: string;
  /** Of the store in use. At the start undefined: a missing store is created, an old one migrated. */
  readonly identity: string | undefined;
}

export interface SqliteQuery {
  /** Both inclusive. The reply is in id order. */
  readonly from: bigint;
  readonly to: bigint;
  readonly limit: number;
  /** The reply ends after the plant that brings its text to more characters than this. */
  readonly textLimit: number;
}

/** Plants to insert in one transaction, a query, a probe whether the database can be written to, or the end. */
export type SqliteRequest = readonly KeyedPlant[] | SqliteQuery | 'probe' | 'close';

/** The reply to a request. The worker's first message is one too, with the identity of the store. */
export type SqliteReply =
  /** Comes before that, when the schema is about to be changed. */
  | { readonly result: 'upgrading'; readonly line: string }
  | { readonly result: 'done'; readonly value: unknown }
  /** `refused`: nothing is stored or will be. `unknown`: a batch may be stored, perhaps after a crash. */
  | { readonly result: 'refused' | 'unknown'; readonly reason: string };
