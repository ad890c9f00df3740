import { constants, isUtf8 } from 'node:buffer';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import {
  NotJsonError,
  OutcomeUnknownError,
  PlantStoreError,
  UnavailableError,
} from '../plants/errors/errors';
import { OperatorError } from '../plants/errors/operator.error';
import { NewPlantDto } from '../plants/dto/plant.dto';
import { parseJson } from '../plants/json';
import { hasSameContent } from '../plants/plant';
import type { PlantsRepository } from '../plants/plants.repository';
import { formatStoreError } from './configured-store';

/** The number of a line, from 1, and its bytes, each decoded as one character. */
type Line = readonly [number: number, bytes: string];

/** A batch has at most this many lines, and fewer once they have this many bytes. */
const MAX_BATCH_LINES = 500;
const MAX_BATCH_BYTES = 2 ** 20;

/** The length of the longest string of V8, minus that of a chunk of the input. */
const MAX_LINE_BYTES = constants.MAX_STRING_LENGTH - 2 ** 20;

/** The pause after a batch as a fraction of its duration, to leave capacity for the service. */
const PAUSE_FRACTION = 0.25;

/** How long to retry if the store does not accept a plant, and how often. */
const RETRY_TIMEOUT_MS = 60_000;
const RETRY_INTERVAL_MS = 500;

/**
 * Stores the plants of a JSON Lines file. Reports and skips a line if it is not a plant, or if a plant with
 * this id and other content is already stored.
 */
export class PlantsImport {
  readonly counts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  private isRetrying = false;

  /**
   * @param report called with a sentence for the operator
   * @param sleep waits for a number of milliseconds
   */
  constructor(
    private readonly repository: PlantsRepository,
    private readonly report: (sentence: string) => void,
    private readonly sleep: (milliseconds: number) => Promise<unknown>,
  ) {}

  /**
   * Imports a file.
   *
   * @throws UnavailableError or OutcomeUnknownError when the store has not accepted a plant for a minute
   */
  async run(input: Readable): Promise<void> {
    for await (const batch of readBatches(input)) {
      const start = performance.now();
      this.isRetrying = false;
      const reasons = await Promise.all(batch.map(([, bytes]) => this.storeLine(bytes)));
      for (const [at, reason] of reasons.entries()) {
        if (reason !== undefined) this.report(`Line ${batch[at]?.[0]}: ${reason}`);
      }
      await this.sleep((performance.now() - start) * PAUSE_FRACTION);
    }
  }

  /**
   * Stores the plant of a line. Retries while the store is unavailable or the outcome is unknown.
   *
   * @returns why the plant is not stored; undefined if it is
   */
  private async storeLine(bytes: string): Promise<string | undefined> {
    const end = performance.now() + RETRY_TIMEOUT_MS;
    for (;;) {
      try {
        const plant = parseLine(bytes);
        if ((await this.repository.insert(plant)) === 'created') {
          this.counts.stored++;
          return undefined;
        }
        const other = await this.repository.find(plant.id);
        const isPresent = other !== undefined && hasSameContent(other, plant);
        this.counts[isPresent ? 'present' : 'conflicting']++;
        return isPresent ? undefined : 'A plant with this id already exists, with other content.';
      } catch (error) {
        if (error instanceof UnavailableError || error instanceof OutcomeUnknownError) {
          if (performance.now() > end) throw error;
          if (!this.isRetrying)
            this.report(`Retrying for up to a minute: ${formatStoreError(error)}`);
          this.isRetrying = true;
          await this.sleep(RETRY_INTERVAL_MS);
        } else {
          // The database may reject a valid plant, for example because of an operator's constraint.
          if (!(error instanceof PlantStoreError)) throw error;
          this.counts.invalid++;
          return formatStoreError(error);
        }
      }
    }
  }
}

function parseLine(line: string): NewPlantDto {
  const bytes = Buffer.from(line, 'latin1');
  if (!isUtf8(bytes)) throw new NotJsonError('Not JSON: it is not UTF-8.');
  return NewPlantDto.from(parseJson(bytes.toString()));
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
      if (batch.length < MAX_BATCH_LINES && size < MAX_BATCH_BYTES) continue;
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
