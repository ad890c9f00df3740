/**
 * CSV by RFC 4180. An absent value and an empty string differ: an unquoted empty field is absent, `""`
 * is the empty string.
 *
 * csv-parse was measured: it tells quoted fields from others at a tenth of the rate at which the stores
 * take plants, and cannot go on after a record with a fault.
 */

const [COMMA, QUOTE, BACKSLASH, CARRIAGE_RETURN, NEWLINE, LETTER_T, LETTER_U] = Buffer.from(
  ',"\\\r\ntu',
) as unknown as [number, number, number, number, number, number, number];

/** The value of a field; undefined when it is absent. */
export type Field = string | undefined;

/** The header of a file that export writes. */
export const csvHeader = 'id,name,tag,idempotencyKey\r\n';

/**
 * Reads the record that begins at an index. A record with a fault ends with its first line.
 *
 * @param isLast whether the text goes on to the end of the file
 * @returns undefined when the text may end in the middle of the record
 */
export function readCsvRecord(
  text: string,
  start: number,
  isLast: boolean,
): { end: number; fields?: Field[]; fault?: string } | undefined {
  const newline = text.indexOf('\n', start);
  if (newline < 0 && !isLast) return undefined;
  const end = newline < 0 ? text.length : newline + 1;
  const fields: Field[] = [];
  for (let at = start; ;) {
    if (text[at] === '"') {
      const close = findClosingQuote(text, at + 1);
      if (close === undefined) {
        return isLast ? { end, fault: 'a quoted field has no closing quotation mark' } : undefined;
      }
      fields.push(text.slice(at + 1, close).replaceAll('""', '"'));
      at = close + 1;
    } else {
      const next = findFieldEnd(text, at);
      if (next === undefined)
        return { end, fault: 'a field that contains a quotation mark must be quoted' };
      fields.push(text.slice(at, next) || undefined);
      at = next;
    }
    if (text[at] === ',') at++;
    else if (at === text.length) return { end: at, fields };
    else if (text[at] === '\n') return { end: at + 1, fields };
    else if (text.startsWith('\r\n', at)) return { end: at + 2, fields };
    else return { end, fault: 'a quoted field must be followed by a comma or the end of the line' };
  }
}

/** Finds what ends an unquoted field; undefined when a quotation mark comes before that. */
function findFieldEnd(text: string, start: number): number | undefined {
  for (let at = start; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        return undefined;
      case COMMA:
        return at;
      case NEWLINE:
        return at > start && text.charCodeAt(at - 1) === CARRIAGE_RETURN ? at - 1 : at;
    }
  }
  return text.length;
}

function findClosingQuote(text: string, start: number): number | undefined {
  for (let at = text.indexOf('"', start); at >= 0; at = text.indexOf('"', at + 2)) {
    if (text[at + 1] !== '"') return at;
  }
  return undefined;
}

/** What a line has before its values. */
const [ID, NAME, TAG, KEY] = ['{"id":', ',"name":"', ',"tag":"', ',"idempotencyKey":"'].map(
  (text) => text.length,
) as [number, number, number, number];
const LINE_END = '}\n'.length;

/** The characters that JSON writes as a letter after a backslash. */
const UNESCAPED = new Map(
  [...'b\bf\fn\nr\rt\t'.matchAll(/(.)(.)/gs)].map(([, letter = '', character = '']) => [
    letter.charCodeAt(0),
    character.charCodeAt(0),
  ]),
);

/** Writes plants as CSV, from their JSON Lines as an archive gives them. */
export class CsvWriter {
  private output = Buffer.alloc(0);

  /**
   * Works on bytes, at three times the speed of JSON.parse and without a string for each value.
   *
   * @returns bytes that are valid until the next call
   */
  write(lines: Uint8Array): Uint8Array {
    // A record is never longer than its line.
    if (this.output.length < lines.length) this.output = Buffer.allocUnsafe(lines.length);
    const { output } = this;
    let length = 0;
    let at = 0;

    /** Copies a string up to its closing quotation mark, and quotes it. */
    const copyQuoted = (): void => {
      output[length++] = QUOTE;
      for (let byte; (byte = lines[at++] ?? QUOTE) !== QUOTE;) {
        if (byte === BACKSLASH) byte = readEscape();
        if (byte === QUOTE) output[length++] = QUOTE;
        output[length++] = byte;
      }
      output[length++] = QUOTE;
    };
    const readEscape = (): number => {
      const letter = lines[at++] ?? 0;
      if (letter !== LETTER_U) return UNESCAPED.get(letter) ?? letter;
      at += 4;
      // Only control characters of ASCII are written so.
      return parseInt(String.fromCharCode(...lines.subarray(at - 2, at)), 16);
    };

    while (at < lines.length) {
      at += ID;
      for (let byte; (byte = lines[at] ?? COMMA) !== COMMA; at++) output[length++] = byte;
      at += NAME;
      output[length++] = COMMA;
      copyQuoted();
      output[length++] = COMMA;
      if (lines[at] === COMMA && lines[at + 2] === LETTER_T) {
        at += TAG;
        copyQuoted();
      }
      output[length++] = COMMA;
      if (lines[at] === COMMA) {
        at += KEY;
        for (let byte; (byte = lines[at++] ?? QUOTE) !== QUOTE;) output[length++] = byte;
      }
      at += LINE_END;
      output[length++] = CARRIAGE_RETURN;
      output[length++] = NEWLINE;
    }
    return output.subarray(0, length);
  }
}
