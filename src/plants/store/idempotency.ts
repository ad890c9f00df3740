import { hasSameContent, type Plant } from '../plant/plant';
import type { InsertOutcome } from '../plants.repository';

/** A plant with the digest of its idempotency key. */
export interface KeyedPlant extends Plant {
  /** The SHA-256 of the idempotency key and the caller, in hexadecimal; absent if the plant has no key. */
  readonly keyDigest?: string | undefined;
}

/** Decides the outcome for a plant whose id already exists, by the stored plant with that id. */
export function duplicateOutcome(stored: KeyedPlant | undefined, plant: KeyedPlant): InsertOutcome {
  if (plant.keyDigest === undefined || plant.keyDigest !== stored?.keyDigest) return 'taken';
  return hasSameContent(stored, plant) ? 'replayed' : 'keyReused';
}
