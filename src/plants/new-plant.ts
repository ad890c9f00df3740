import { plainToInstance } from 'class-transformer';
import { type ValidationError, validateSync } from 'class-validator';
import { isExactText, NewPlantDto } from './dto/plant.dto';
import { InvalidPlantError, NotJsonError } from './errors/errors';
import { isInt64 } from './int64';
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
 * Whether a candidate meets the rules on {@link NewPlantDto}: the verdict of class-validator, which
 * needs some twenty times as long for it and is asked only to explain a refusal.
 */
export function isNewPlant(candidate: NewPlantCandidate): candidate is Plant {
  const { id, name, tag } = candidate;
  return isInt64(id) && isExactText(name) && (tag === undefined || isExactText(tag));
}

/**
 * Copies the three members of a candidate that meets the rules.
 *
 * @throws InvalidPlantError naming each member at fault and why
 */
export function toNewPlant({ id, name, tag }: NewPlantCandidate): NewPlantDto {
  // What is checked is what is copied: members may be accessors.
  const candidate = { id, name, tag };
  if (isNewPlant(candidate)) return copyPlant(candidate);
  throw toInvalidPlantError(validateSync(plainToInstance(NewPlantDto, withoutDepth(candidate))));
}

export function copyPlant({ id, name, tag }: Plant): NewPlantDto {
  const members = tag === undefined ? { id, name } : { id, name, tag };
  return Object.assign(new NewPlantDto(), members);
}

/** Replaces objects by empty ones: class-transformer would follow them to any depth. */
export function withoutDepth({ id, name, tag }: NewPlantCandidate): NewPlantCandidate {
  const flatten = (value: unknown): unknown =>
    typeof value === 'object' && value !== null ? {} : value;
  return { id: flatten(id), name: flatten(name), tag: flatten(tag) };
}

/** The refusal for what class-validator has found, in the words of the decorators. */
export function toInvalidPlantError(errors: readonly ValidationError[]): InvalidPlantError {
  const reasons = errors.flatMap(({ constraints = {} }) => Object.values(constraints));
  return new InvalidPlantError(`Not a NewPlant: ${reasons.join('; ')}.`);
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
