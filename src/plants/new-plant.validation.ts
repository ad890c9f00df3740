import { validateSync } from 'class-validator';
import { InvalidPlantError } from '../errors';
import { NewPlantDto } from './dto/new-plant.dto';

/** Values that stand where a NewPlant has its members, of any type. */
export type NewPlantCandidate = Partial<Record<keyof NewPlantDto, unknown>>;

/**
 * Judges a candidate by the rules on {@link NewPlantDto}. Other members it has are left behind.
 *
 * @throws InvalidPlantError naming each member at fault and why
 */
export function validateNewPlant({ id, name, tag }: NewPlantCandidate): NewPlantDto {
  const plant = Object.assign(new NewPlantDto(), { id, name, tag });
  const faults = validateSync(plant);
  if (faults.length > 0) {
    const reasons = faults.flatMap(({ constraints = {} }) => Object.values(constraints));
    throw new InvalidPlantError(`Not a NewPlant: ${reasons.join('; ')}.`);
  }
  return plant;
}
