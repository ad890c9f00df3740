import { isUtf8 } from 'node:buffer';
import { type Field, readCsvRecord } from './csv';

/** One record of a file: a line, or as many lines as a CSV record has. */
export interface SourceRecord {
  /** The number of its first line, from 1. */
  readonly line: number;
  /** As it stood, without the end of its last line; its bytes when they are not UTF-8. */
  readonly raw: string | Buffer;
  /** The fields, of CSV. */
  readonly fields?: readonly Field[] | undefined;
  /** Why it cannot be read, as a phrase. */
  readonly fault?: string | undefined;
}

/** The formats of files. */
export const formats = ['ndjson', 'csv'] as const;
/** A format of files: JSON Lines, or CSV by RFC 4180 with a header. */
export type Format = (typeof formats)[number];

/** A file cannot be imported at all. The message is one sentence. */
export class FileError extends Error {
  override readonly name = 'FileError';
}

/**
 * The longest record, in bytes: a request has at most 256 MiB, and a record is no longer than the
 * shortest request for its plant, but for the idempotency key.
 */
const RECORD_LIMIT = 257 * 2 ** 20;

interface FoundRecord {
  /** The index after its last line's end. */
  readonly end: number;
  readonly fields?: readonly Field[];
  readonly fault?: string;
}

/** Finds the record that begins at an index; undefined when the text may end in the middle of it. */
type FindRecord = (text: string, start: number, isLast: boolean) => FoundRecord | undefined;

const finders: Record<Format, FindRecord> = { ndjson: findLine, csv: readCsvRecord };

/**
 * Reads the records of a file as its bytes arrive, in groups. Empty lines are no records. A group is read
 * while it is iterated, to its end, before the next one is asked for.
 *
 * @throws FileError when a record is longer than any plant can be
 */
export async function* readRecords(
  chunks: AsyncIterable<Buffer>,
  format: Format,
): AsyncGenerator<Iterable<SourceRecord>> {
  const find = finders[format];
  let line = 1;
  let isStart = true;
  /** Bytes that begin with a record, and how many of them did not have all of it. */
  let waiting: Buffer[] = [];
  let length = 0;
  let seen = 0;

  function* take(isLast: boolean): Generator<SourceRecord> {
    let block = Buffer.concat(waiting);
    if (isStart && block.subarray(0, MARK.length).equals(MARK)) block = block.subarray(MARK.length);
    isStart = false;
    // Cut at the end of a line, a text is cut between two characters.
    const whole = isLast ? block : block.subarray(0, block.lastIndexOf('\n') + 1);
    // In Latin-1 each byte is one character, and comes back as that byte.
    const encoding = isUtf8(whole) ? 'utf8' : 'latin1';
    const text = whole.toString(encoding);

    let at = 0;
    for (;;) {
      const found = at < text.length ? find(text, at, isLast) : undefined;
      if (found === undefined) break;
      const raw = text.slice(at, withoutLineEnd(text, at, found.end));
      if (raw !== '') {
        yield encoding === 'utf8'
          ? { line, raw, fields: found.fields, fault: found.fault }
          : fromBytes(line, Buffer.from(raw, encoding), find);
      }
      line += countLineEnds(text, at, found.end);
      at = found.end;
    }
    const begun = Buffer.from(text.slice(at), encoding);
    waiting = [begun, block.subarray(whole.length)];
    length = seen = begun.length + block.length - whole.length;
  }

  for await (const chunk of chunks) {
    waiting.push(chunk);
    length += chunk.length;
    if (length > RECORD_LIMIT)
      throw new FileError(`Line ${line} is longer than 257 MiB, and no plant is that long.`);
    // A record that was not there to its end is looked at again when twice as much of it is.
    if (length >= Math.max(2 * seen, MARK.length)) yield take(false);
  }
  yield take(true);
}

const MARK = Buffer.from('\uFEFF');

function findLine(text: string, start: number, isLast: boolean): FoundRecord | undefined {
  const end = text.indexOf('\n', start);
  if (end >= 0) return { end: end + 1 };
  return isLast ? { end: text.length } : undefined;
}

function fromBytes(line: number, bytes: Buffer, find: FindRecord): SourceRecord {
  if (!isUtf8(bytes)) return { line, raw: bytes, fault: 'it is not UTF-8' };
  const raw = bytes.toString();
  const found = find(raw, 0, true);
  return { line, raw, fields: found?.fields, fault: found?.fault };
}

/** The index where a record ends, before the end of its last line. */
function withoutLineEnd(text: string, start: number, end: number): number {
  if (end === start || text[end - 1] !== '\n') return end;
  return end - 1 > start && text[end - 2] === '\r' ? end - 2 : end - 1;
}

function countLineEnds(text: string, start: number, end: number): number {
  let count = 0;
  let at = text.indexOf('\n', start);
  for (; at >= 0 && at < end; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
