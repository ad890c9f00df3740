import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { compileRules } from './dto/compile-rules';
import { NewPlantDto } from './dto/plant.dto';
import { InvalidPlantError, NotJsonError } from './errors/errors';
import { exactId } from './json';
import type { Plant } from './plant';

/** Values that stand where a NewPlant has its members, of any type. */
export type NewPlantCandidate = { readonly [Member in keyof Plant]?: unknown };

/**
 * Reads a JSON text as a candidate, with its id exactly. Members that the contract does not name are
 * left out; of a member given twice the last one counts.
 *
 * @throws NotJsonError when the text is not JSON
 * @throws InvalidPlantError when it is not an object
 */
export function parseCandidate(text: string): NewPlantCandidate {
  const { id, name, tag } = candidateOf(parseJson(text));
  return { id: typeof id === 'number' ? exactId(id, text) : id, name, tag };
}

/** @throws InvalidPlantError when the value is not an object */
export function candidateOf(value: unknown): NewPlantCandidate {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidPlantError('Not a NewPlant: it must be a JSON object.');
  }
  return value;
}

/**
 * Copies the three members of a candidate that keeps the rules of {@link NewPlantDto}. class-validator
 * explains a refusal, in the words of the decorators.
 *
 * @throws InvalidPlantError naming each member at fault and why
 */
export function toNewPlant({ id, name, tag }: NewPlantCandidate): NewPlantDto {
  // What is checked is what is copied: members may be accessors.
  const candidate = tag === undefined ? { id, name } : { id, name, tag };
  if (keepsRules(candidate)) return Object.assign(new NewPlantDto(), candidate);
  const errors = validateSync(plainToInstance(NewPlantDto, withoutDepth(candidate)));
  const reasons = errors.flatMap(({ constraints = {} }) => Object.values(constraints));
  throw new InvalidPlantError(`Not a NewPlant: ${reasons.join('; ')}.`);
}

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
