import { InvalidPlantError } from '../errors';
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
