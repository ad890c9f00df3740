import type { Plant } from './plant';

/** A plant with all that is stored of it, as it moves from one store to another. */
export interface ArchivedPlant extends Plant {
  /**
   * The SHA-256 of the caller and the idempotency key that the plant was created with, in 64 lowercase
   * hexadecimal digits; absent when it was created without one.
   */
  readonly idempotencyKey?: string | undefined;
}

/** Some plants as JSON Lines. */
export interface PlantLines {
  /** How many plants. */
  readonly count: number;
  /**
   * One JSON object per line, each line with its end: `{"id":1,"name":"Fern","tag":"shade"}`. Members
   * are in the order id, name, tag, idempotencyKey; those that are absent are left out. Equal plants
   * give equal bytes, whatever the store. In UTF-8; valid until the next plants are asked for.
   */
  readonly bytes: Uint8Array;
}

/** The outcome of a batch of plants. */
export interface WriteResult {
  /** How many were stored, or would be. */
  readonly stored: number;
  /** How many were there already, with the same name and tag. */
  readonly present: number;
  /** The indexes of those whose id belongs to a plant with another name or tag, in order. */
  readonly conflicts: readonly number[];
}

/**
 * A store as a whole, for moving its plants in and out. It has its own connection and may be used
 * beside a running service. It gives way to the service: a service on
 * the same store never refuses a creation because of it.
 */
export abstract class PlantsArchive {
  /** About how many plants the store has. */
  abstract estimateCount(): Promise<number>;

  /** All plants in id order, as they were at one moment. Memory does not grow with their number. */
  abstract lines(): AsyncIterable<PlantLines>;

  /**
   * Stores plants whose ids are free, in one or more transactions. All of them are durable once
   * {@link close} has resolved.
   */
  abstract write(plants: readonly ArchivedPlant[]): Promise<WriteResult>;

  /** Says what {@link write} would do, and stores nothing. */
  abstract compare(plants: readonly ArchivedPlant[]): Promise<WriteResult>;

  /** Makes durable what was written, and closes the connection. */
  abstract close(): Promise<void>;
}

/** Finds what is present and what conflicts among plants that a store did not take. */
export function judgeTaken(
  plants: readonly ArchivedPlant[],
  stored: ReadonlyMap<bigint, Plant>,
): Omit<WriteResult, 'stored'> & { readonly free: number } {
  const conflicts: number[] = [];
  let free = 0;
  plants.forEach(({ id, name, tag }, index) => {
    const other = stored.get(id);
    if (other === undefined) free++;
    else if (other.name !== name || other.tag !== tag) conflicts.push(index);
  });
  return { conflicts, free, present: plants.length - free - conflicts.length };
}
