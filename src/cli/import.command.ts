import { constants, isUtf8 } from 'node:buffer';
import { createReadStream, openSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import {
  NotJsonError,
  OutcomeUnknownError,
  PlantStoreError,
  UnavailableError,
} from '../plants/errors/errors';
import { OperatorError } from '../plants/errors/operator.error';
import { NewPlantDto } from '../plants/plant/plant.dto';
import { parseJson } from '../plants/plant/json';
import { hasSameContent } from '../plants/plant/plant';
import type { PlantsRepository } from '../plants/plants.repository';
import { formatStoreError, withRepository } from './configured-store';

/** A batch ends with the line that fills it. */
const BATCH_BYTES = 2 ** 15;

/** The length of the longest string of V8, minus that of a chunk of the input. */
const MAX_LINE_BYTES = constants.MAX_STRING_LENGTH - 2 ** 20;

/** The pause after a batch as a fraction of its duration. Without it, a service on the same store was a fifth slower. */
const PAUSE_FRACTION = 0.25;

/** How long to retry if the store does not accept a plant, and how often. */
const RETRY_TIMEOUT_MS = 60_000;
const RETRY_INTERVAL_MS = 500;

interface Line {
  /** The number of the line, from 1. */
  readonly number: number;
  /** Its bytes, each decoded as one character. */
  readonly bytes: string;
}

interface Result {
  readonly kind: keyof Counts;
  /** Why the plant is not stored. */
  readonly reason?: string;
}

type Counts = Record<'stored' | 'present' | 'conflicting' | 'invalid', number>;

/**
 * Stores the plants of a JSON Lines file. Reports and skips a line if it is not a plant, or if a plant with this id and
 * other content is already stored.
 * @param file undefined or `-` for standard input
 */
export async function importFile(file = '-'): Promise<void> {
  // If the file does not exist, no store is created.
  const input = file === '-' ? process.stdin : createReadStream(file, { fd: openSync(file, 'r') });
  await withRepository(async (repository) => {
    const counts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
    try {
      await importLines(input, repository, counts);
    } finally {
      input.destroy();
      console.error(
        `Stored ${counts.stored}, already present ${counts.present}, conflicting ${counts.conflicting}, invalid ${counts.invalid}.`,
      );
    }
    if (counts.conflicting + counts.invalid > 0) process.exitCode = 1;
  });
}

/**
 * Stores the plants in batches, and counts how many lines, not counting empty ones, had each result.
 * @throws UnavailableError or OutcomeUnknownError when the store has not accepted a plant for a minute. What was stored
 *   until then is counted.
 */
export async function importLines(
  input: Readable,
  repository: PlantsRepository,
  counts: Counts,
): Promise<void> {
  // When one line gives up, the others of its batch stop retrying.
  const givingUp = new AbortController();
  for await (const batch of readBatches(input)) {
    const start = performance.now();
    const storing = batch.map(async ({ bytes }) => {
      try {
        return await storeLine(bytes, repository, givingUp.signal);
      } catch (error) {
        givingUp.abort();
        throw error;
      }
    });
    for (const [at, result] of (await Promise.allSettled(storing)).entries()) {
      if (result.status === 'rejected') continue;
      const { kind, reason } = result.value;
      counts[kind]++;
      if (reason !== undefined) console.error(`Line ${batch[at]?.number}: ${reason}`);
    }
    // Throws the error of the first line that gave up.
    await Promise.all(storing);
    await setTimeout((performance.now() - start) * PAUSE_FRACTION);
  }
}

/** Collects lines until they fill a batch. If a line cannot be read, the lines before it are the last batch. */
async function* readBatches(input: Readable): AsyncGenerator<Line[]> {
  let batch: Line[] = [];
  let size = 0;
  try {
    for await (const line of readLines(input)) {
      batch.push(line);
      size += line.bytes.length;
      if (size < BATCH_BYTES) continue;
      yield batch;
      batch = [];
      size = 0;
    }
  } catch (error) {
    yield batch;
    throw error;
  }
  yield batch;
}

/**
 * Reads the lines of a file that are not empty. Skips a leading byte order mark.
 * @throws OperatorError when the file has another format than JSON Lines, or when a line cannot be read
 */
async function* readLines(input: Readable): AsyncGenerator<Line> {
  // As UTF-8, `readline` would also split lines at U+2028 and U+2029, which JSON allows in strings.
  const limited = new LineLimit().setEncoding('latin1');
  // An error of one of them destroys both, and `readline` throws it.
  pipeline(input, limited, () => undefined);
  const lines = createInterface({ input: limited, crlfDelay: Infinity });
  let number = 0;
  try {
    for await (const line of lines) {
      number++;
      const bytes = number === 1 ? line.replace(/^\xEF\xBB\xBF/, '') : line;
      if (number === 1) assertJsonLines(bytes);
      if (bytes !== '') yield { number, bytes };
    }
  } catch (cause) {
    if (cause instanceof OperatorError) throw cause;
    const reason = (cause as Error).message;
    throw new OperatorError(`Line ${number + 1} cannot be read: ${reason}.`, { cause });
  }
}

/** Passes its input on, and fails at a line that is too long: `readline` keeps a line in memory until it ends. */
class LineLimit extends Transform {
  /** The length of the line that has not ended yet. */
  private lineBytes = 0;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const lineEnd = Math.max(chunk.lastIndexOf('\n'), chunk.lastIndexOf('\r'));
    const bytesBehind = chunk.length - 1 - lineEnd;
    this.lineBytes = lineEnd < 0 ? this.lineBytes + chunk.length : bytesBehind;
    if (this.lineBytes > MAX_LINE_BYTES) done(new Error('it is longer than 511 MiB'));
    else done(null, chunk);
  }
}

interface OtherFormat {
  readonly name: string;
  /** The advice for a file of this format. */
  readonly advice: string;
  readonly isBegunBy: (line: string) => boolean;
}

const OTHER_FORMATS: readonly OtherFormat[] = [
  {
    name: 'compressed by gzip',
    advice: 'decompress it first, for example with `gunzip`',
    isBegunBy: (line) => line.startsWith('\x1F\x8B'),
  },
  {
    name: 'compressed by zstd',
    advice: 'decompress it first, for example with `unzstd`',
    isBegunBy: (line) => line.startsWith('\x28\xB5\x2F\xFD'),
  },
  {
    name: 'a ZIP archive',
    advice: 'extract it first',
    isBegunBy: (line) => line.startsWith('PK\x03\x04'),
  },
  {
    name: 'UTF-16',
    advice: 'convert it to UTF-8, for example with `iconv`',
    // A byte order mark, or the zero in a character of ASCII.
    isBegunBy: (line) => /^(?:\xFF\xFE|\xFE\xFF)/.test(line) || line.slice(0, 2).includes('\0'),
  },
  {
    name: 'a JSON array',
    advice: "write one plant on each line, for example with `jq -c '.[]'`",
    isBegunBy: (line) => line.trimStart().startsWith('['),
  },
  {
    name: 'JSON over several lines',
    advice: 'write one plant on each line, for example with `jq -c .`',
    isBegunBy: (line) => line.trim() === '{',
  },
];

/** @throws OperatorError when the first line shows that the file has another format */
function assertJsonLines(firstLine: string): void {
  const format = OTHER_FORMATS.find(({ isBegunBy }) => isBegunBy(firstLine));
  if (!format) return;
  throw new OperatorError(`The input is ${format.name}, not JSON Lines: ${format.advice}.`);
}

/**
 * Stores the plant of a line. Retries while the store is unavailable or the outcome is unknown.
 * @param signal aborted when no further attempt should be made
 * @throws UnavailableError or OutcomeUnknownError when the store has not accepted the plant for a minute
 */
async function storeLine(
  bytes: string,
  repository: PlantsRepository,
  signal: AbortSignal,
): Promise<Result> {
  const end = performance.now() + RETRY_TIMEOUT_MS;
  for (;;) {
    try {
      const plant = parseLine(bytes);
      if ((await repository.insert(plant)) === 'created') return { kind: 'stored' };
      const other = await repository.find(plant.id);
      if (other && hasSameContent(other, plant)) return { kind: 'present' };
      const reason = 'A plant with this id already exists, with other content.';
      return { kind: 'conflicting', reason };
    } catch (error) {
      if (!(error instanceof PlantStoreError)) throw error;
      const canRetry = error instanceof UnavailableError || error instanceof OutcomeUnknownError;
      // The database may reject a valid plant, for example because of an operator's constraint.
      if (!canRetry) return { kind: 'invalid', reason: formatStoreError(error) };
      if (performance.now() > end || signal.aborted) throw error;
      await setTimeout(RETRY_INTERVAL_MS);
    }
  }
}

function parseLine(line: string): NewPlantDto {
  const bytes = Buffer.from(line, 'latin1');
  if (!isUtf8(bytes)) throw new NotJsonError('Not JSON: it is not UTF-8.');
  return NewPlantDto.from(parseJson(bytes.toString()));
}
