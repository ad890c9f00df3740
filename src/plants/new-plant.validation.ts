import { validateSync } from 'class-validator';
import { InvalidPlantError } from '../errors';
import { compileRules } from './compiled-rules';
import { NewPlantDto } from './dto/new-plant.dto';

/** Values that stand where a NewPlant has its members, of any type. */
export type NewPlantCandidate = { readonly [Member in keyof NewPlantDto]?: unknown };

const keepsTheRules = compileRules(NewPlantDto);

/**
 * Judges a candidate by the rules on {@link NewPlantDto}.
 *
 * @throws InvalidPlantError naming each member at fault and why
 */
export function assertNewPlant(candidate: NewPlantCandidate): asserts candidate is NewPlantDto {
  if (keepsTheRules(candidate)) return;
  const reasons = validateSync(Object.assign(new NewPlantDto(), candidate)).flatMap(
    ({ constraints = {} }) => Object.values(constraints),
  );
  throw new InvalidPlantError(`Not a NewPlant: ${reasons.join('; ')}.`);
}
