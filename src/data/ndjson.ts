import { InvalidPlantError } from '../errors';
import { describeJsonError, exactId } from '../plants';
import { type ArchivedPlant, validateArchivedPlant } from './plants.archive';
import type { SourceRecord } from './records';

/** @throws InvalidPlantError saying what is wrong with the line */
export function readJsonPlant({ raw, fault }: SourceRecord): ArchivedPlant {
  if (typeof raw !== 'string') throw new InvalidPlantError(`Not JSON: ${fault}.`);
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch (error) {
    // The record is one line, whose number in the file is reported beside this.
    throw new InvalidPlantError(`Not JSON: ${describeJsonError(error).replace('line 1 ', '')}.`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidPlantError('Not a NewPlant: the line must be a JSON object.');
  }
  const { id, name, tag, idempotencyKey } = value as Record<string, unknown>;
  const exact = typeof id === 'number' ? exactId(id, raw) : id;
  return validateArchivedPlant({ id: exact, name, tag }, idempotencyKey);
}

/** Writes plants as JSON Lines. Equal plants give equal text, whatever their store. */
export function toNdjson(plants: readonly ArchivedPlant[]): string {
  const lines = plants.map(({ id, name, tag, idempotencyKey }) => {
    // An id beyond 2^53 is no number of JavaScript.
    return `{"id":${id},${JSON.stringify({ name, tag, idempotencyKey }).slice(1)}\n`;
  });
  return lines.join('');
}
