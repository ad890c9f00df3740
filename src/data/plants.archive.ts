import { OperatorError } from '../errors';
import type { Plant } from '../plants';
import type { ArchivedPlant } from './archived-plant';

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
 * beside a running service. It gives way to the service: a service on the same store never refuses a
 * creation because of it.
 */
export abstract class PlantsArchive {
  /** About how many plants the store has. */
  abstract estimateCount(): Promise<number>;

  /**
   * All plants in id order, as they were at one moment, in pages of some hundred. Memory does not grow
   * with their number.
   */
  abstract pages(): AsyncIterable<readonly ArchivedPlant[]>;

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

/** A row of the table. The key is in hexadecimal digits. */
export type PlantRow = readonly [id: bigint, name: string, tag: string | null, key: string | null];

export function toArchivedPlant([id, name, tag, key]: PlantRow): ArchivedPlant {
  return { id, name, tag: tag ?? undefined, idempotencyKey: key ?? undefined };
}

/** Says which plants of a batch are stored, and which conflict with what is stored. */
export function compareWithStored(
  plants: readonly ArchivedPlant[],
  stored: readonly Plant[],
): WriteResult {
  const byId = new Map(stored.map((plant) => [plant.id, plant]));
  const conflicts: number[] = [];
  let free = 0;
  plants.forEach(({ id, name, tag }, index) => {
    const other = byId.get(id);
    if (other === undefined) free++;
    else if (other.name !== name || other.tag !== tag) conflicts.push(index);
  });
  return { stored: free, present: plants.length - free - conflicts.length, conflicts };
}

/**
 * The outcome of a batch after its plants with free ids were stored.
 *
 * @param stored how many were
 * @param found what {@link compareWithStored} says now
 */
export function afterInsertion(stored: number, { present, conflicts }: WriteResult): WriteResult {
  return { stored, present: present - stored, conflicts };
}

/** @throws OperatorError when a plant has an idempotency key that the table has no column for */
export function assertKeysFit(hasKeys: boolean, plants: readonly ArchivedPlant[]): void {
  if (hasKeys || plants.every(({ idempotencyKey }) => idempotencyKey === undefined)) return;
  throw new OperatorError(
    'The file has idempotency keys, but the table plants has no column idempotency_key. Add the column, or remove the keys from the file.',
  );
}
