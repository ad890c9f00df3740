import type { KeyedPlant } from '../keyed-plant';
import type { PlantRange } from '../store-driver';

export interface SqliteWorkerData {
  /** The database file, absolute. */
  readonly path: string;
  /** Of the store in use. At the start undefined: a missing store is created. */
  readonly identity: string | undefined;
}

/** Plants are inserted in one transaction. A probe writes to the database, and changes nothing. */
export type SqliteRequest = readonly KeyedPlant[] | PlantRange | 'probe' | 'close';

/** The worker's first message is one too, with the identity of the store that it has opened. */
export type SqliteReply =
  | { readonly result: 'done'; readonly value: unknown }
  /** `refused`: nothing is stored or will be. `unknown`: a batch may be stored, perhaps after a crash. */
  | { readonly result: 'refused' | 'unknown'; readonly reason: string };
