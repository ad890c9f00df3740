import { validateSync } from 'class-validator';
import { InvalidPlantError } from '../errors';
import { isExactText } from './dto/new-plant.decorators';
import { NewPlantDto } from './dto/plant.dto';
import { isInt64 } from './int64';
import type { Plant, StoredPlant } from './plant';

/** Values that stand where a NewPlant has its members, of any type. */
export type NewPlantCandidate = { readonly [Member in keyof Plant]?: unknown };

/**
 * Whether a candidate meets the rules on {@link NewPlantDto}: the verdict of class-validator, which
 * needs some twenty times as long for it and is asked only to explain a refusal.
 */
export function isValidNewPlant(candidate: NewPlantCandidate): candidate is Plant {
  const { id, name, tag } = candidate;
  return isInt64(id) && isExactText(name) && (tag === undefined || isExactText(tag));
}

/**
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
export const toStoredPlant = (plant: Plant): StoredPlant => copyOf(plant);

function copyOf({ id, name, tag }: NewPlantCandidate): NewPlantDto & NewPlantCandidate {
  return Object.assign(new NewPlantDto(), { id, name }, tag === undefined ? undefined : { tag });
}
