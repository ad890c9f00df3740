import { validateSync } from 'class-validator';
import { InvalidPlantError } from '../errors';
import { NewPlantDto } from './dto/new-plant.dto';
import { isValidNewPlant, type NewPlantCandidate } from './new-plant.rules';
import type { Plant, StoredPlant } from './plant';

/**
 * Validates a candidate by the rules on {@link NewPlantDto}.
 *
 * @returns a copy of the three members; whatever else the candidate has is left out
 * @throws InvalidPlantError naming each member at fault and why
 */
export function validateNewPlant(candidate: NewPlantCandidate): NewPlantDto {
  const plant = copyOf(candidate);
  if (isValidNewPlant(plant)) return plant;
  const reasons = validateSync(plant).flatMap(({ constraints = {} }) => Object.values(constraints));
  throw new InvalidPlantError(`Not a NewPlant: ${reasons.join('; ')}.`);
}

/** Copies a plant that a repository has read. */
export function toStoredPlant(plant: Plant): StoredPlant {
  return copyOf(plant);
}

function copyOf({ id, name, tag }: NewPlantCandidate): NewPlantDto & NewPlantCandidate {
  // Each by itself: Object.assign() takes ten times as long.
  const plant = new NewPlantDto();
  const members: { -readonly [Member in keyof NewPlantCandidate]: unknown } = plant;
  members.id = id;
  members.name = name;
  if (tag !== undefined) members.tag = tag;
  return plant;
}
