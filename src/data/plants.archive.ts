import { InvalidPlantError, OperatorError } from '../errors';
import { type Plant, validateNewPlant } from '../plants';

/** A plant with all that is stored of it, as it moves from one store to another. */
export interface ArchivedPlant extends Plant {
  /**
   * The SHA-256 of the caller and the idempotency key that the plant was created with, in 64 lowercase
   * hexadecimal digits; absent when it was created without one.
   */
  readonly idempotencyKey?: string | undefined;
}

/**
 * Validates the members of a plant in a file, by the rules of a creation over HTTP.
 *
 * @throws InvalidPlantError naming each member at fault and why
 */
export function validateArchivedPlant(
  candidate: Readonly<Record<'id' | 'name' | 'tag', unknown>>,
  idempotencyKey: unknown,
): ArchivedPlant {
  const plant = validateNewPlant(candidate);
  if (idempotencyKey === undefined) return plant;
  if (typeof idempotencyKey !== 'string' || !/^[0-9a-f]{64}$/.test(idempotencyKey)) {
    throw new InvalidPlantError(
      'Not a NewPlant: idempotencyKey must be 64 lowercase hexadecimal digits.',
    );
  }
  return Object.assign(plant, { idempotencyKey });
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
 * beside a running service. It gives way to the service: a service on the same store never refuses a
 * creation because of it.
 */
export abstract class PlantsArchive {
  /** @param hasKeys whether the table has a column for idempotency keys */
  protected constructor(protected readonly hasKeys: boolean) {}

  /** About how many plants the store has. */
  abstract estimateCount(): Promise<number>;

  /** All plants in id order, as they were at one moment, in pages of bounded size. */
  abstract pages(): AsyncIterable<readonly ArchivedPlant[]>;

  /** Makes durable what was written, and closes the connection. */
  abstract close(): Promise<void>;

  /**
   * Stores plants whose ids are free, in one or more transactions. All of them are durable once
   * {@link close} has resolved.
   *
   * @throws OperatorError when the store cannot keep the idempotency key of a plant
   */
  async write(plants: readonly ArchivedPlant[]): Promise<WriteResult> {
    if (!this.hasKeys && plants.some(({ idempotencyKey }) => idempotencyKey !== undefined)) {
      throw new OperatorError(
        'The file has idempotency keys, but the table plants has no column idempotency_key. Add the column, or remove the keys from the file.',
      );
    }
    const stored = await this.insert(plants);
    if (stored === plants.length) return { stored, present: 0, conflicts: [] };
    const { present, conflicts } = await this.compare(plants);
    return { stored, present: present - stored, conflicts };
  }

  /** Says what {@link write} would do, and stores nothing. */
  async compare(plants: readonly ArchivedPlant[]): Promise<WriteResult> {
    const found = await this.find(plants.map(({ id }) => id));
    const stored = new Map(found.map((plant) => [plant.id, plant]));
    const conflicts: number[] = [];
    let free = 0;
    plants.forEach(({ id, name, tag }, index) => {
      const other = stored.get(id);
      if (other === undefined) free++;
      else if (other.name !== name || other.tag !== tag) conflicts.push(index);
    });
    return { stored: free, present: plants.length - free - conflicts.length, conflicts };
  }

  /** @returns how many were stored, because their ids were free */
  protected abstract insert(plants: readonly ArchivedPlant[]): Promise<number>;

  protected abstract find(ids: readonly bigint[]): Promise<Plant[]>;
}

/** A row of the table. The key is in hexadecimal digits. */
export type PlantRow = readonly [id: bigint, name: string, tag: string | null, key: string | null];

export function toArchivedPlant([id, name, tag, key]: PlantRow): ArchivedPlant {
  return { id, name, tag: tag ?? undefined, idempotencyKey: key ?? undefined };
}
