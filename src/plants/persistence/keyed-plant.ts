import { hasSameContent, type Plant } from '../plant';
import type { InsertOutcome } from '../plants.repository';

/** A plant with the digest of its idempotency key. */
export interface KeyedPlant extends Plant {
  /** The SHA-256 of the idempotency key and the caller, in hexadecimal; absent if the plant has no key. */
  readonly keyDigest?: string | undefined;
}

/**
 * The outcome for a plant whose id is taken.
 *
 * @param stored the plant that has the id; undefined when that one has another key or none
 */
export function repetitionOutcome(
  stored: KeyedPlant | undefined,
  plant: KeyedPlant,
): InsertOutcome {
  if (plant.keyDigest === undefined || plant.keyDigest !== stored?.keyDigest) return 'taken';
  return hasSameContent(stored, plant) ? 'replayed' : 'keyReused';
}
