import { CsvError, parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { InvalidPlantError, OperatorError } from '../errors';
import { parseInt64 } from '../plants';
import { type ArchivedPlant, validateArchivedPlant } from './plants.archive';
import type { Field, FoundRecord, SourceRecord } from './records';

/** What is wrong with a record, by the parser's code. */
const FAULTS: Partial<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'a quoted field has no closing quotation mark',
  CSV_INVALID_CLOSING_QUOTE: 'a quoted field must be followed by a comma or the end of the line',
  INVALID_OPENING_QUOTE: 'a field that contains a quotation mark must be quoted',
};

const COLUMNS = ['id', 'name', 'tag', 'idempotencyKey'];
/** The first line of a file that export writes. */
export const csvHeader = `${COLUMNS.join()}\r\n`;

export function toCsv(plants: readonly ArchivedPlant[]): string {
  const rows = plants.map(({ id, name, tag, idempotencyKey }) => [id, name, tag, idempotencyKey]);
  // An absent value is not a string.
  return stringify(rows, {
    quoted_string: true,
    record_delimiter: 'windows',
    cast: { bigint: String },
  });
}

/**
 * Finds the records of a text. One with a fault ends with its first line, so that a quotation mark too
 * much spoils no more than that.
 */
export function findCsvRecords(text: string, isLast: boolean): FoundRecord[] {
  const texts: string[] = [];
  let at = 0;
  for (let end; (end = endOfRecord(text, at, isLast)) !== undefined; at = end) {
    texts.push(text.slice(at, end));
  }
  // A quotation mark is not closed, which the parser reports.
  if (isLast && at < text.length) texts.push(text.slice(at));

  // All records at once is several times as fast as one at a time.
  const rows = parseRecords(texts.join(''));
  if (typeof rows === 'string' || rows.length === 0) return findOneByOne(text, isLast);
  let next = 0;
  return texts.map((record) => ({
    text: record,
    fields: /^\r?\n$/.test(record) ? [] : rows[next++],
  }));
}

function findOneByOne(text: string, isLast: boolean): FoundRecord[] {
  const found: FoundRecord[] = [];
  for (let at = 0; at < text.length;) {
    const line = text.slice(at, text.indexOf('\n', at) + 1 || text.length);
    const end = endOfRecord(text, at, isLast);
    const record = end === undefined ? line : text.slice(at, end);
    const rows = parseRecords(record);
    // Its closing quotation mark may follow.
    if (rows === 'CSV_QUOTE_NOT_CLOSED' && end === undefined && !isLast) break;
    const isFaulty = typeof rows === 'string';
    found.push(
      isFaulty ? { text: line, fault: FAULTS[rows] ?? rows } : { text: record, fields: rows[0] },
    );
    at += isFaulty ? line.length : record.length;
  }
  return found;
}

const [QUOTE, NEWLINE] = Buffer.from('"\n');

/** The index behind the first line end, or end of the file, from an index on that is in no quoted field. */
function endOfRecord(text: string, start: number, isLast: boolean): number | undefined {
  let isQuoted = false;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) isQuoted = !isQuoted;
    else if (code === NEWLINE && !isQuoted) return at + 1;
  }
  return isLast && !isQuoted && start < text.length ? text.length : undefined;
}

/** @returns the fields of each record, or the code of the first fault */
function parseRecords(text: string): Field[][] | string {
  try {
    return parse(text, {
      // An unquoted empty field is absent, `""` is the empty string.
      cast: (value, { quoting: isQuoted }) => (value === '' && !isQuoted ? undefined : value),
      record_delimiter: ['\r\n', '\n'],
      skip_empty_lines: true,
    });
  } catch (error) {
    if (error instanceof CsvError) return error.code;
    throw error;
  }
}

/**
 * Makes the function that reads records as plants.
 *
 * @param header the first record; undefined for an empty file
 * @throws OperatorError when the header does not have what a plant needs
 */
export function csvPlantReader(
  header: SourceRecord | undefined,
): (record: SourceRecord) => ArchivedPlant {
  const names = header?.fields ?? [];
  const missing = ['id', 'name'].find((column) => !names.includes(column));
  if (missing !== undefined) {
    throw new OperatorError(`The first line must be a header with the column "${missing}".`);
  }
  if (new Set(names).size < names.length) {
    throw new OperatorError('The header has the same column twice.');
  }
  const indexes = COLUMNS.map((column) => names.indexOf(column));

  return ({ fields, fault }) => {
    if (fields === undefined) throw new InvalidPlantError(`Not CSV: ${fault}.`);
    if (fields.length !== names.length) {
      throw new InvalidPlantError(
        `Not CSV: the line has ${fields.length} fields, but the header has ${names.length}.`,
      );
    }
    const [digits, name, tag, key] = indexes.map((index) => fields[index]);
    const id = digits === undefined ? undefined : (parseInt64(digits) ?? NaN);
    return validateArchivedPlant({ id, name, tag }, key);
  };
}
