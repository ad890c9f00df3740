import { isUtf8 } from 'node:buffer';
import {
  NotJsonError,
  OutcomeUnknownError,
  PlantStoreError,
  UnavailableError,
} from '../plants/errors/errors';
import { NewPlantDto } from '../plants/dto/plant.dto';
import { parseJson } from '../plants/json';
import { hasSameContent, type Plant } from '../plants/plant';
import type { PlantsRepository } from '../plants/plants.repository';
import { type Line, readLines } from './lines';
import { formatStoreError } from './store';

/** A batch has at most this many lines, and fewer once they have this many bytes. */
const MAX_BATCH_LINES = 1000;
const MAX_BATCH_BYTES = 2 ** 20;

/** The pause after a batch as a fraction of its duration, to leave capacity for the service. */
const PAUSE_FRACTION = 0.25;

/** How long to retry if the store does not accept a plant, and how often. */
const RETRY_TIMEOUT_MS = 60_000;
const RETRY_INTERVAL_MS = 500;

/** How many rejected lines are reported one by one. */
const MAX_REPORTED_LINES = 20;

/**
 * Stores the plants of a JSON Lines file. Reports and skips a line if it is not a plant, or if a plant with
 * this id and other content is already stored.
 */
export class PlantsImport {
  readonly counts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  private isRetrying = false;

  /**
   * @param maxLineBytes the maximum length of a line
   * @param report called with a sentence for the operator
   * @param sleep waits for a number of milliseconds
   */
  constructor(
    private readonly repository: PlantsRepository,
    private readonly maxLineBytes: number,
    private readonly report: (sentence: string) => void,
    private readonly sleep: (milliseconds: number) => Promise<unknown>,
  ) {}

  /**
   * Imports a file. After each durable batch, yields the number of lines processed so far.
   *
   * @throws UnavailableError or OutcomeUnknownError when the store has not accepted a plant for a minute
   */
  async *run(chunks: AsyncIterable<Buffer>): AsyncGenerator<number> {
    let batch: Line[] = [];
    let size = 0;
    for await (const line of readLines(chunks, this.maxLineBytes)) {
      batch.push(line);
      size += line.bytes?.length ?? 0;
      if (batch.length < MAX_BATCH_LINES && size < MAX_BATCH_BYTES) continue;
      const start = performance.now();
      yield await this.store(batch);
      batch = [];
      size = 0;
      await this.sleep((performance.now() - start) * PAUSE_FRACTION);
    }
    yield await this.store(batch);
  }

  /** Stores the plants of a batch of lines, and reports the rejected lines. Returns the number of lines processed so far. */
  private async store(batch: readonly Line[]): Promise<number> {
    const { counts } = this;
    this.isRetrying = false;
    let reported = counts.conflicting + counts.invalid;
    const reasons = await Promise.all(batch.map((line) => this.storeLine(line)));
    for (const [at, reason] of reasons.entries()) {
      if (reason === undefined) continue;
      if (reported < MAX_REPORTED_LINES) this.report(`Line ${batch[at]?.number}: ${reason}`);
      if (reported++ === MAX_REPORTED_LINES)
        this.report('Further lines were not stored and are not listed.');
    }
    return Object.values(counts).reduce((sum, count) => sum + count);
  }

  /** @returns why the plant of a line is not stored; undefined if it is */
  private async storeLine({ bytes }: Line): Promise<string | undefined> {
    try {
      if (!bytes)
        throw new NotJsonError(`The line is longer than ${this.maxLineBytes} bytes (BODY_LIMIT).`);
      if (!isUtf8(bytes)) throw new NotJsonError('Not JSON: it is not UTF-8.');
      const outcome = await this.insert(NewPlantDto.from(parseJson(bytes.toString())));
      this.counts[outcome]++;
      if (outcome !== 'conflicting') return undefined;
      return 'A plant with this id already exists, with other content.';
    } catch (error) {
      // The database may reject a valid plant, for example because of an operator's constraint.
      if (!(error instanceof PlantStoreError) || isTransient(error)) throw error;
      this.counts.invalid++;
      return formatStoreError(error);
    }
  }

  /** Inserts a plant. Retries while the store is unavailable or the outcome is unknown. */
  private async insert(plant: Plant): Promise<'stored' | 'present' | 'conflicting'> {
    const end = performance.now() + RETRY_TIMEOUT_MS;
    for (;;) {
      try {
        if ((await this.repository.insert(plant)) === 'created') return 'stored';
        const other = await this.repository.find(plant.id);
        return other && hasSameContent(other, plant) ? 'present' : 'conflicting';
      } catch (error) {
        if (!isTransient(error) || performance.now() > end) throw error;
        if (!this.isRetrying) {
          this.isRetrying = true;
          this.report(`Retrying for up to a minute: ${formatStoreError(error)}`);
        }
        await this.sleep(RETRY_INTERVAL_MS);
      }
    }
  }
}

function isTransient(error: unknown): error is PlantStoreError {
  return error instanceof UnavailableError || error instanceof OutcomeUnknownError;
}
