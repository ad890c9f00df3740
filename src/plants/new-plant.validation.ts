import { validateSync } from 'class-validator';
import { InvalidPlantError } from '../errors';
import { compileRules } from './compiled-rules';
import { NewPlantDto } from './dto/new-plant.dto';

/** Values that stand where a NewPlant has its members, of any type. */
export type NewPlantCandidate = Partial<Record<keyof NewPlantDto, unknown>>;

const keepsTheRules = compileRules(NewPlantDto);

/**
 * Judges a candidate by the rules on {@link NewPlantDto}. Other members it has are left behind.
 *
 * @throws InvalidPlantError naming each member at fault and why
 */
export function validateNewPlant({ id, name, tag }: NewPlantCandidate): NewPlantDto {
  const plant = Object.assign(new NewPlantDto(), { id, name, tag });
  if (!keepsTheRules(plant)) throw new InvalidPlantError(`Not a NewPlant: ${faultsOf(plant)}.`);
  return plant;
}

function faultsOf(plant: NewPlantDto): string {
  return validateSync(plant)
    .flatMap(({ constraints = {} }) => Object.values(constraints))
    .join('; ');
}
