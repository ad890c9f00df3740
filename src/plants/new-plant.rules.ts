import { INT64_MAX, INT64_MIN } from './int64';
import type { Plant } from './plant';

/** Values that stand where a NewPlant has its members, of any type. */
export type NewPlantCandidate = { readonly [Member in keyof Plant]?: unknown };

/**
 * Whether a candidate keeps the rules on `NewPlantDto`: the verdict of class-validator, which needs
 * some twenty times as long for it and is asked only to explain a refusal. This file does without it,
 * so that a command need not load it.
 */
export function isValidNewPlant(candidate: NewPlantCandidate): candidate is Plant {
  const { id, name, tag } = candidate;
  return isInt64(id) && isExactText(name) && (tag === undefined || isExactText(tag));
}

/** Whether a value is an int64, as a bigint. */
export function isInt64(value: unknown): boolean {
  return typeof value === 'bigint' && value >= INT64_MIN && value <= INT64_MAX;
}

/**
 * Whether a value is a string that every store keeps to the character. U+0000 excludes a string
 * (PostgreSQL cannot store it in a text), as does an unpaired surrogate (UTF-8 cannot encode it).
 */
export function isExactText(value: unknown): boolean {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0');
}
