import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { compileRules, membersOf } from './dto/compile-rules';
import { NewPlantDto } from './dto/plant.dto';
import { InvalidPlantError, NotJsonError } from './errors/errors';
import { exactId } from './json';
import type { Plant } from './plant';

/** Values that stand where a NewPlant has its members, of any type. */
export type NewPlantCandidate = { readonly [Member in keyof Plant]?: unknown };

/**
 * Reads a JSON text as a candidate, with its id exactly. Of a member given twice the last one counts.
 *
 * @throws NotJsonError when the text is not JSON
 * @throws InvalidPlantError when it is not an object
 */
export function parseCandidate(text: string): NewPlantCandidate {
  const candidate = candidateOf(parseJson(text));
  const { id } = candidate;
  return typeof id === 'number' ? Object.assign(candidate, { id: exactId(id, text) }) : candidate;
}

/** @throws InvalidPlantError when the value is not an object */
export function candidateOf(value: unknown): NewPlantCandidate {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidPlantError('Not a NewPlant: it must be a JSON object.');
  }
  return value;
}

/**
 * Copies the members of a candidate that keeps the rules of {@link NewPlantDto}, and leaves out those
 * that it does not name. class-validator explains a refusal, in the words of the decorators.
 *
 * @throws InvalidPlantError naming each member at fault and why
 */
export function toNewPlant(candidate: NewPlantCandidate): NewPlantDto {
  const plant: { -readonly [Member in keyof Plant]?: unknown } = new NewPlantDto();
  for (const name of members) {
    // What is checked is what is copied: members may be accessors.
    const value = candidate[name];
    if (value !== undefined) plant[name] = value;
  }
  if (keepsRules(plant)) return plant as NewPlantDto;
  const errors = validateSync(plainToInstance(NewPlantDto, withoutDepth(plant)));
  const reasons = errors.flatMap(({ constraints = {} }) => Object.values(constraints));
  throw new InvalidPlantError(`Not a NewPlant: ${reasons.join('; ')}.`);
}

const members = membersOf(NewPlantDto);
const keepsRules = compileRules(NewPlantDto);

/** Replaces objects by empty ones: class-transformer would follow them to any depth. */
function withoutDepth(candidate: NewPlantCandidate): object {
  const entries = Object.entries(candidate).map(([name, value]): [string, unknown] => [
    name,
    typeof value === 'object' && value !== null ? {} : value,
  ]);
  return Object.fromEntries(entries);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // It may quote some characters of the text.
    const reason = (error as Error).message.replaceAll(/[^ -~]/g, '?');
    throw new NotJsonError(`Not JSON: ${reason}`);
  }
}
