import { constants, isUtf8 } from 'node:buffer';
import { createReadStream, openSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
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

/** The number of a line, from 1, and its bytes, each decoded as one character. */
type Line = readonly [number: number, bytes: string];
type Counts = Record<'stored' | 'present' | 'conflicting' | 'invalid', number>;

/**
 * Stores the plants of a JSON Lines file. Reports and skips a line if it is not a plant, or if a plant with this id and
 * other content is already stored.
 * @param file undefined or `-` for standard input
 */
export async function importFile(file = '-'): Promise<void> {
  // If the file does not exist, no store is created.
  const input = file === '-' ? process.stdin : createReadStream(file, { fd: openSync(file, 'r') });
  await withRepository('create', async (repository) => {
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

/** Stores the plants in batches, and counts how many lines, not counting empty ones, had each result. */
export async function importLines(
  input: Readable,
  repository: PlantsRepository,
  counts: Counts,
): Promise<void> {
  for await (const batch of readBatches(input)) {
    const start = performance.now();
    const results = await Promise.all(batch.map(([, bytes]) => storeLine(bytes, repository)));
    for (const [at, [result, reason]] of results.entries()) {
      counts[result]++;
      if (reason !== undefined) console.error(`Line ${batch[at]?.[0]}: ${reason}`);
    }
    await setTimeout((performance.now() - start) * PAUSE_FRACTION);
  }
}

/** Reads the lines of a file that are not empty. Skips a leading byte order mark. */
async function* readBatches(input: Readable): AsyncGenerator<Line[]> {
  // As UTF-8, `readline` would also split lines at U+2028 and U+2029, which JSON allows in strings.
  const lines = createInterface({ input: input.setEncoding('latin1'), crlfDelay: Infinity });
  let pendingBytes = 0;
  input.on('data', (chunk: string) => {
    const end = Math.max(chunk.lastIndexOf('\n'), chunk.lastIndexOf('\r'));
    pendingBytes = chunk.length - 1 - end + (end < 0 ? pendingBytes : 0);
    if (pendingBytes > MAX_LINE_BYTES) input.destroy(new Error('it is longer than 511 MiB'));
  });
  let batch: Line[] = [];
  let [number, size] = [0, 0];
  try {
    for await (const line of lines) {
      const bytes = ++number === 1 ? line.replace(/^\xEF\xBB\xBF/, '') : line;
      if (bytes === '') continue;
      batch.push([number, bytes]);
      size += bytes.length;
      if (size < BATCH_BYTES) continue;
      yield batch;
      [batch, size] = [[], 0];
    }
  } catch (cause) {
    yield batch;
    const reason = (cause as Error).message;
    throw new OperatorError(`Line ${number + 1} cannot be read: ${reason}.`, { cause });
  }
  yield batch;
}

/**
 * Stores the plant of a line. Retries while the store is unavailable or the outcome is unknown.
 * @returns the result, and the reason if the plant is not stored
 * @throws UnavailableError or OutcomeUnknownError when the store has not accepted the plant for a minute
 */
async function storeLine(
  bytes: string,
  repository: PlantsRepository,
): Promise<[result: keyof Counts, reason?: string]> {
  const end = performance.now() + RETRY_TIMEOUT_MS;
  for (;;) {
    try {
      const plant = parseLine(bytes);
      if ((await repository.insert(plant)) === 'created') return ['stored'];
      const other = await repository.find(plant.id);
      if (other && hasSameContent(other, plant)) return ['present'];
      return ['conflicting', 'A plant with this id already exists, with other content.'];
    } catch (error) {
      if (!(error instanceof PlantStoreError)) throw error;
      const canRetry = error instanceof UnavailableError || error instanceof OutcomeUnknownError;
      // The database may reject a valid plant, for example because of an operator's constraint.
      if (!canRetry) return ['invalid', formatStoreError(error)];
      if (performance.now() > end) throw error;
      await setTimeout(RETRY_INTERVAL_MS);
    }
  }
}

function parseLine(line: string): NewPlantDto {
  const bytes = Buffer.from(line, 'latin1');
  if (!isUtf8(bytes)) throw new NotJsonError('Not JSON: it is not UTF-8.');
  return NewPlantDto.from(parseJson(bytes.toString()));
}
