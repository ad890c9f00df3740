import { isUtf8 } from 'node:buffer';
import { OperatorError } from '../errors';
import { findCsvRecords } from './csv';

/** The value of a CSV field; undefined when it is absent. */
export type Field = string | undefined;

/** A record as a format finds it in a text. */
export interface FoundRecord {
  /** With the end of its last line. */
  readonly text: string;
  readonly fields?: readonly Field[] | undefined;
  /** Why it cannot be read, as a phrase. */
  readonly fault?: string | undefined;
}

/** One record of a file: a line, or as many lines as a CSV record has. */
export interface SourceRecord extends Omit<FoundRecord, 'text'> {
  /** The number of its first line, from 1. */
  readonly line: number;
  /** As it stood, without the end of its last line; its bytes when they are not UTF-8. */
  readonly raw: string | Buffer;
}

export const formats = ['ndjson', 'csv'] as const;
/** A format of files: JSON Lines, or CSV by RFC 4180 with a header. */
export type Format = (typeof formats)[number];

/**
 * The longest record, in bytes: a request has at most 256 MiB, and a record is no longer than the
 * shortest request for its plant, but for the idempotency key.
 */
const RECORD_LIMIT = 257 * 2 ** 20;

const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

/**
 * Reads the records of a file as its bytes arrive, in groups. Empty lines are no records.
 *
 * @throws OperatorError when a record is longer than any plant can be
 */
export async function* readRecords(
  chunks: AsyncIterable<Buffer>,
  format: Format,
): AsyncGenerator<SourceRecord[]> {
  let line = 1;
  let isStart = true;
  /** Bytes that begin with a record, and how many of them did not have all of it. */
  let waiting: Buffer[] = [];
  let length = 0;
  let unfinished = 0;

  function take(isLast: boolean): SourceRecord[] {
    let block = Buffer.concat(waiting);
    if (isStart && block.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)) {
      block = block.subarray(BYTE_ORDER_MARK.length);
    }
    isStart = false;
    // Cut at the end of a line, a text is cut between two characters.
    const whole = isLast ? block : block.subarray(0, block.lastIndexOf('\n') + 1);
    // In Latin-1 each byte is one character, and comes back as that byte.
    const encoding = isUtf8(whole) ? 'utf8' : 'latin1';
    const text = whole.toString(encoding);
    // In order and without gaps. The last ones are left out when they may go on behind the text.
    const all =
      format === 'csv'
        ? findCsvRecords(text, isLast)
        : text.split(/(?<=\n)/).map((each) => ({ text: each }));
    const records: SourceRecord[] = [];
    let end = 0;
    for (const found of all) {
      const source = toSource(line, found, encoding);
      if (source.raw.length > 0) records.push(source);
      for (let at = 0; (at = found.text.indexOf('\n', at) + 1) > 0;) line++;
      end += found.text.length;
    }
    const taken = Buffer.byteLength(text.slice(0, end), encoding);
    waiting = [block.subarray(taken)];
    length = unfinished = block.length - taken;
    return records;
  }

  for await (const chunk of chunks) {
    waiting.push(chunk);
    length += chunk.length;
    if (length > RECORD_LIMIT) {
      throw new OperatorError(`Line ${line} is longer than 257 MiB, and no plant is that long.`);
    }
    // A record that was not there to its end is read again when twice as much of it is.
    if (length >= Math.max(2 * unfinished, BYTE_ORDER_MARK.length)) yield take(false);
  }
  yield take(true);
}

function toSource(line: number, found: FoundRecord, encoding: 'utf8' | 'latin1'): SourceRecord {
  const { text, fields, fault } = found;
  const raw = text.replace(/\r?\n$/, '');
  if (encoding === 'utf8') return { line, raw, fields, fault };
  const bytes = Buffer.from(raw, encoding);
  if (!isUtf8(bytes)) return { line, raw: bytes, fault: 'it is not UTF-8' };
  const decode = (field: Field): Field => field && Buffer.from(field, encoding).toString();
  return { line, raw: bytes.toString(), fields: fields?.map(decode), fault };
}
