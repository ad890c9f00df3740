import {
  type ArchivedPlant,
  exactId,
  findJsonFault,
  isValidNewPlant,
  parseInt64,
} from '../plants/archives';
import type { Field } from './csv';
import { FileError, type Format, type SourceRecord } from './records';

/** A record is not a plant. The message is one sentence. */
export class RecordError extends Error {
  override readonly name: string = 'RecordError';

  /** Says why, as a sentence. */
  explain(): string | Promise<string> {
    return this.message;
  }
}

type Candidate = Readonly<Record<'id' | 'name' | 'tag', unknown>>;

/** A record breaks the rules of a creation. */
class RuleError extends RecordError {
  override readonly name = 'RuleError';

  constructor(private readonly candidate: Candidate) {
    super('Not a NewPlant.');
  }

  /** Loads what explains it only now: most files have no such record. */
  override async explain(): Promise<string> {
    const { validateNewPlant } = await import('../plants/standalone.js');
    try {
      validateNewPlant(this.candidate);
    } catch (error) {
      return (error as Error).message;
    }
    return this.message;
  }
}

/**
 * Reads a record as a plant, by the rules of a creation over HTTP.
 *
 * @throws RecordError saying what is wrong with it
 */
export type ReadPlant = (record: SourceRecord) => ArchivedPlant;

/**
 * The function that reads the records of a file as plants.
 *
 * @param header the first record, of CSV; undefined for an empty file
 * @throws FileError when the header does not have what a plant needs
 */
export function plantReader(format: Format, header: SourceRecord | undefined): ReadPlant {
  return format === 'ndjson' ? readJsonPlant : csvPlantReader(header);
}

/** A line as `export` writes it, without an escape in a string: it needs no parser and breaks no rule. */
const PLAIN_LINE =
  /^\{"id": ?(-?(?:0|[1-9]\d{0,17})), ?"name": ?"([^"\\\p{Cc}]*)"(?:, ?"tag": ?"([^"\\\p{Cc}]*)")?\}$/u;

const readJsonPlant: ReadPlant = ({ raw, fault }) => {
  if (typeof raw !== 'string') throw new RecordError(`Not JSON: ${fault}.`);
  const [, digits, text = '', type] = PLAIN_LINE.exec(raw) ?? [];
  if (digits !== undefined) {
    return type === undefined
      ? { id: BigInt(digits), name: text }
      : { id: BigInt(digits), name: text, tag: type };
  }
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch {
    // The record is one line, whose number in the file is reported beside this.
    throw new RecordError(`Not JSON: ${findJsonFault(raw)?.replace('line 1, ', '')}.`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RecordError('Not a NewPlant: the line must be a JSON object.');
  }
  const { id, name, tag, idempotencyKey } = value as Record<string, unknown>;
  const exact = typeof id === 'number' ? exactId(id, raw) : id;
  return validPlant({ id: exact, name, tag }, idempotencyKey);
};

function csvPlantReader(header: SourceRecord | undefined): ReadPlant {
  const names = header?.fields ?? [];
  for (const column of ['id', 'name']) {
    if (!names.includes(column)) {
      throw new FileError(`The first line must be a header with the column "${column}".`);
    }
  }
  if (new Set(names).size < names.length)
    throw new FileError('The header has the same column twice.');
  const [id, name, tag, key] = ['id', 'name', 'tag', 'idempotencyKey'].map((column) =>
    names.indexOf(column),
  );
  const at = (fields: readonly Field[], index = -1): Field => fields[index];

  return ({ fields, fault }) => {
    if (fields === undefined) throw new RecordError(`Not CSV: ${fault}.`);
    if (fields.length !== names.length) {
      throw new RecordError(
        `Not CSV: the line has ${fields.length} fields, but the header has ${names.length}.`,
      );
    }
    const digits = at(fields, id);
    const exact = digits === undefined ? undefined : (parseInt64(digits) ?? digits);
    const candidate = { id: exact, name: at(fields, name), tag: at(fields, tag) };
    return validPlant(candidate, at(fields, key));
  };
}

const KEY = /^[0-9a-f]{64}$/;

function validPlant(candidate: Candidate, idempotencyKey: unknown): ArchivedPlant {
  if (!isValidNewPlant(candidate)) throw new RuleError(candidate);
  const { id, name, tag } = candidate;
  const plant = tag === undefined ? { id, name } : { id, name, tag };
  if (idempotencyKey === undefined) return plant;
  if (typeof idempotencyKey !== 'string' || !KEY.test(idempotencyKey)) {
    throw new RecordError(
      'Not a NewPlant: idempotencyKey must be 64 lowercase hexadecimal digits.',
    );
  }
  return { ...plant, idempotencyKey };
}
