import type { Plant } from '../../plant';

/** A change of the schema from one version to the next. */
export interface SqliteMigration {
  readonly statements: string;
  /**
   * The same change as an edit of a table's definition in the schema, which takes no longer for a large
   * table. Only a table that is defined exactly `from` can be changed so; others take the statements.
   */
  readonly definition?: { readonly from: string; readonly to: string };
}

/** The worker's settings. */
export interface SqliteWorkerData {
  /** The database file, absolute. */
  readonly path: string;
  readonly migrations: readonly SqliteMigration[];
  /** Milliseconds to wait for another process's lock. */
  readonly busyTimeout: number;
  /**
   * The identity of the store that is in use. Undefined at the start of the service, when a missing
   * store is created and an old one migrated.
   */
  readonly identity: string | undefined;
}

/** A batch of plants to insert, by column. */
export interface SqliteBatch {
  readonly ids: BigInt64Array;
  readonly names: readonly string[];
  readonly tags: readonly (string | undefined)[];
  /** What names callers and idempotency keys; absent when no plant of the batch has a key. */
  readonly keys?: readonly (string | undefined)[];
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

/** The reply to a query: the plants, or why reading failed. */
export type SqlitePlants = readonly Plant[] | { readonly reason: string };

/** The reply to a batch. */
export type SqliteCommitReply =
  /**
   * Committed and synced. `insertions` has a number for each plant: 0 if its id was taken, 1 if it was
   * created, 2 if it was replayed, 3 if its id was stored with the same key and other content.
   */
  | { readonly result: 'committed'; readonly insertions: Uint8Array }
  /** Nothing of the batch is stored or will be. */
  | { readonly result: 'refused'; readonly reason: string }
  /** The batch may be stored, or may turn out to be stored after a crash. */
  | { readonly result: 'unknown'; readonly reason: string };

/** The reply to a probe: whether the database can be written to. */
export type SqliteStatusReply = { readonly result: 'ok' } | SqliteFailure;

/** The worker's first message: the store's identity, or why it cannot be used. */
export type SqliteStartReply = { readonly result: 'ok'; readonly identity: string } | SqliteFailure;

interface SqliteFailure {
  readonly result: 'failed';
  readonly reason: string;
}
