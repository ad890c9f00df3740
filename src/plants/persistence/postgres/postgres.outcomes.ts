import { PlantStoreError, UnavailableError } from '../../errors/errors';
import type { Insertion } from '../../plants.repository';
import { type KeyedPlant, repetitionOutcome } from '../plant-batches';

export type PlantsById = ReadonlyMap<bigint, KeyedPlant>;
/** By id, whether a plant was inserted, or why it was not or may not have been. */
export type RowOutcomes = ReadonlyMap<bigint, boolean | PlantStoreError>;

/**
 * What became of a plant of a batch, whose plants with different ids were tried together.
 *
 * @param firsts the plants of the batch that were tried, by id
 * @param outcomes what became of those
 * @param stored the plants stored before with the id and key of one of the batch
 */
export function outcomeOf(
  plant: KeyedPlant,
  firsts: PlantsById,
  outcomes: RowOutcomes,
  stored: PlantsById | UnavailableError,
): Insertion | PlantStoreError {
  const [first, outcome] = [firsts.get(plant.id), outcomes.get(plant.id)];
  const isFirst = plant === first;
  if (outcome instanceof PlantStoreError) {
    return isFirst ? outcome : new UnavailableError({ cause: outcome });
  }
  if (outcome === true) return isFirst ? 'created' : repetitionOutcome(first, plant);
  if (plant.keyDigest === undefined) return 'taken';
  return stored instanceof UnavailableError
    ? stored
    : repetitionOutcome(stored.get(plant.id), plant);
}
