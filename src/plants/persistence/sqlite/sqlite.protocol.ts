import type { Plant } from '../../plant';

/** What the SQLite worker starts with. */
export interface SqliteWorkerData {
  /** The database file, absolute. */
  readonly path: string;
  readonly migrations: readonly string[];
  /** Milliseconds to wait for another process's lock. */
  readonly busyTimeout: number;
  /** Whether a missing file is created. Only at the start: a file that vanishes later is a fault. */
  readonly create: boolean;
}

/** A batch of plants, by columns. */
export interface SqliteBatch {
  readonly ids: BigInt64Array;
  readonly names: readonly string[];
  readonly tags: readonly (string | undefined)[];
}

/** A question for plants in id order. */
export interface SqliteQuery {
  /** The smallest id asked for. */
  readonly from: bigint;
  /** The largest id asked for. */
  readonly to: bigint;
  /** How many plants at most. */
  readonly limit: number;
  /** After how many characters of text the reply ends early, though not before its first plant. */
  readonly textLimit: number;
}

/**
 * What the thread is asked: to commit a batch; to read; to open the database anew and write to it, so
 * as to find out whether it can; or to close it and end.
 */
export type SqliteRequest = SqliteBatch | SqliteQuery | 'probe' | 'close';

/** The answer to a query: the plants, or why there is none. */
export type SqlitePlants = readonly Plant[] | { readonly reason: string };

/** The answer to a batch and to a probe, and the first message of a worker. */
export type SqliteReply =
  /** Committed and synced. `kept` holds 1 where the plant was kept, 0 where its id was taken. */
  | { readonly result: 'committed'; readonly kept: Uint8Array }
  /** Nothing of the batch is stored, nor ever will be. */
  | { readonly result: 'refused'; readonly reason: string }
  /** The batch may be stored, or be found stored after a crash. */
  | { readonly result: 'unknown'; readonly reason: string };
