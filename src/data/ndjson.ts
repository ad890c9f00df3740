import { InvalidPlantError } from '../errors';
import { describeJsonError, exactId } from '../plants';
import { type ArchivedPlant, validateArchivedPlant } from './archived-plant';
import type { FoundRecord, SourceRecord } from './records';

/** Finds the lines of a text. */
export function findLines(text: string): FoundRecord[] {
  return text.split(/(?<=\n)/).map((line) => ({ text: line }));
}

/**
 * Reads a line as a plant.
 *
 * @throws InvalidPlantError saying what is wrong with it
 */
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
  return plants
    .map(({ id, name, tag, idempotencyKey: key }) => {
      const optional =
        (tag === undefined ? '' : `,"tag":${JSON.stringify(tag)}`) +
        (key === undefined ? '' : `,"idempotencyKey":"${key}"`);
      // An id beyond 2^53 is no number of JavaScript.
      return `{"id":${id},"name":${JSON.stringify(name)}${optional}}\n`;
    })
    .join('');
}
