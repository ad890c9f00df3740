/**
 * CSV by RFC 4180. An absent value and an empty string differ: an unquoted empty field is absent, `""`
 * is the empty string.
 *
 * csv-parse was measured: it tells quoted fields from others at a tenth of the rate at which the stores
 * take plants, and cannot go on after a record with a fault.
 */

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
  const line = text.slice(start, end).replace(/\r?\n$/, '');
  if (!line.includes('"'))
    return { end, fields: line.split(',').map((field) => field || undefined) };

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
      DELIMITER.lastIndex = at;
      const next = DELIMITER.exec(text)?.index ?? text.length;
      const field = text.slice(at, next);
      if (field.includes('"'))
        return { end, fault: 'a field that contains a quotation mark must be quoted' };
      fields.push(field || undefined);
      at = next;
    }
    if (text[at] === ',') at++;
    else if (at === text.length) return { end: at, fields };
    else if (text[at] === '\n') return { end: at + 1, fields };
    else if (text.startsWith('\r\n', at)) return { end: at + 2, fields };
    else return { end, fault: 'a quoted field must be followed by a comma or the end of the line' };
  }
}

/** What ends an unquoted field. */
const DELIMITER = /,|\r?\n/g;

function findClosingQuote(text: string, start: number): number | undefined {
  for (let at = text.indexOf('"', start); at >= 0; at = text.indexOf('"', at + 2)) {
    if (text[at + 1] !== '"') return at;
  }
  return undefined;
}

/**
 * Writes plants as CSV.
 *
 * @param lines the same plants as JSON Lines, as an archive gives them
 */
export function toCsv(lines: string): string {
  let csv = '';
  // Not by a regular expression: for that a line ends at U+2028 too.
  for (let at = 0; at < lines.length;) {
    const end = lines.indexOf('\n', at);
    csv += toRecord(lines.slice(at, end));
    at = end + 1;
  }
  return csv;
}

function toRecord(line: string): string {
  const { name, tag, idempotencyKey } = JSON.parse(line) as Record<string, string | undefined>;
  // The id is the first member; as a number of JavaScript it may be another one.
  const id = line.slice('{"id":'.length, line.indexOf(','));
  return `${id},${quote(name)},${quote(tag)},${idempotencyKey ?? ''}\r\n`;
}

function quote(text: string | undefined): string {
  return text === undefined ? '' : `"${text.replaceAll('"', '""')}"`;
}
