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
import { reasonOf } from './store';

/** A batch has at most this many lines, and fewer once they have this many bytes. */
const MAX_BATCH_LINES = 1000;
const MAX_BATCH_BYTES = 2 ** 20;

/** After a batch, store and processor are left to others for this part of the time that it took. */
const PAUSE_SHARE = 0.25;

/** How long to retry if the store does not accept a plant, and how often. */
const RETRY_TIMEOUT_MS = 60_000;
const RETRY_INTERVAL_MS = 500;

/** How many lines that are not stored are reported one by one. */
const MAX_REPORTED_LINES = 20;

/**
 * Stores the plants of a file of JSON Lines. A line that is not a plant, or whose id belongs to a plant
 * with other content, is reported and left out.
 */
export class PlantsImport {
  readonly counts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  private isTryingAgain = false;

  /**
   * @param limit the most bytes of a line
   * @param report gets what the operator should know, as a sentence
   * @param sleep pauses for some milliseconds
   */
  constructor(
    private readonly repository: PlantsRepository,
    private readonly limit: number,
    private readonly report: (sentence: string) => void,
    private readonly sleep: (milliseconds: number) => Promise<unknown>,
  ) {}

  /**
   * Yields after each batch, all of which is durable then, how many lines are done.
   *
   * @throws UnavailableError or OutcomeUnknownError when the store has not taken a plant for a minute
   */
  async *run(chunks: AsyncIterable<Buffer>): AsyncGenerator<number> {
    let batch: Line[] = [];
    let size = 0;
    for await (const line of readLines(chunks, this.limit)) {
      batch.push(line);
      size += line.bytes?.length ?? 0;
      if (batch.length < MAX_BATCH_LINES && size < MAX_BATCH_BYTES) continue;
      const start = performance.now();
      yield await this.store(batch);
      batch = [];
      size = 0;
      await this.sleep((performance.now() - start) * PAUSE_SHARE);
    }
    yield await this.store(batch);
  }

  /** Stores the plants of some lines, and reports the other lines. Returns how many lines are done. */
  private async store(batch: readonly Line[]): Promise<number> {
    const { counts } = this;
    this.isTryingAgain = false;
    let reported = counts.conflicting + counts.invalid;
    const reasons = await Promise.all(batch.map((line) => this.storeLine(line)));
    for (const [at, reason] of reasons.entries()) {
      if (reason === undefined) continue;
      if (reported < MAX_REPORTED_LINES) this.report(`Line ${batch[at]?.number}: ${reason}`);
      if (reported++ === MAX_REPORTED_LINES) this.report('More lines were not stored.');
    }
    return Object.values(counts).reduce((sum, count) => sum + count);
  }

  /** @returns why the plant of a line is not stored; undefined if it is */
  private async storeLine({ bytes }: Line): Promise<string | undefined> {
    try {
      if (!bytes) throw new NotJsonError(`It is longer than ${this.limit} bytes (BODY_LIMIT).`);
      if (!isUtf8(bytes)) throw new NotJsonError('Not JSON: it is not UTF-8.');
      const outcome = await this.insert(NewPlantDto.from(parseJson(bytes.toString())));
      this.counts[outcome]++;
      if (outcome !== 'conflicting') return undefined;
      return 'A plant with this id exists already, with other content.';
    } catch (error) {
      // The database may refuse a valid plant, for example by a rule of its operator.
      if (!(error instanceof PlantStoreError) || isPassing(error)) throw error;
      this.counts.invalid++;
      return reasonOf(error);
    }
  }

  /** Tries again while the store does not take the plant. */
  private async insert(plant: Plant): Promise<'stored' | 'present' | 'conflicting'> {
    const end = performance.now() + RETRY_TIMEOUT_MS;
    for (;;) {
      try {
        if ((await this.repository.insert(plant)) === 'created') return 'stored';
        const other = await this.repository.find(plant.id);
        return other && hasSameContent(other, plant) ? 'present' : 'conflicting';
      } catch (error) {
        if (!isPassing(error) || performance.now() > end) throw error;
        if (!this.isTryingAgain) {
          this.isTryingAgain = true;
          this.report(`Trying again for up to a minute: ${reasonOf(error)}`);
        }
        await this.sleep(RETRY_INTERVAL_MS);
      }
    }
  }
}

function isPassing(error: unknown): error is PlantStoreError {
  return error instanceof UnavailableError || error instanceof OutcomeUnknownError;
}
