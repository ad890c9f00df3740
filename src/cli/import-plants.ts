import { isUtf8 } from 'node:buffer';
import { setTimeout } from 'node:timers/promises';
import {
  OutcomeUnknownError,
  type Plant,
  PlantStoreError,
  type PlantsRepository,
  UnavailableError,
} from '../plants';
import { hasSameContent, NotJsonError, parseCandidate, toNewPlant } from '../plants/program';
import { type Line, readLines } from './lines';
import { reasonOf } from './store';

/** Plants that are stored at once, and bytes of their lines after which they are fewer. */
const BATCH_LENGTH = 500;
const BATCH_SIZE = 2 ** 20;

/** Milliseconds for which a batch is tried again that the store does not take, and between two tries. */
const PATIENCE = 60_000;
const RETRY_INTERVAL = 500;

/** How many lines that are not stored are reported one by one. */
const REPORT_LENGTH = 20;

interface ReadPlant {
  readonly line: number;
  readonly plant: Plant;
}

/**
 * Stores the plants of a file of JSON Lines. A line that is not a plant, or whose id belongs to a plant
 * with another name or tag, is reported and left out.
 */
export class PlantsImport {
  readonly counts = { stored: 0, present: 0, conflicting: 0, invalid: 0 };
  /** The lines of the present batch that are not stored, and why. */
  private rejections: [line: number, reason: string][] = [];
  private reported = 0;

  /**
   * @param limit the most bytes of a line
   * @param signal ends pauses
   * @param report is told what the operator should know, as a sentence
   */
  constructor(
    private readonly repository: PlantsRepository,
    private readonly limit: number,
    private readonly signal: AbortSignal,
    private readonly report: (sentence: string) => void,
  ) {}

  /**
   * Yields after each batch, all of which is durable then, how many lines are done.
   *
   * @throws UnavailableError or OutcomeUnknownError when the store has not taken a batch for a minute
   */
  async *run(chunks: AsyncIterable<Buffer>): AsyncGenerator<number> {
    let batch: ReadPlant[] = [];
    let size = 0;
    for await (const line of readLines(chunks, this.limit)) {
      batch.push(...this.read(line));
      size += line.bytes?.length ?? 0;
      if (batch.length < BATCH_LENGTH && size < BATCH_SIZE) continue;
      const start = performance.now();
      yield await this.store(batch);
      batch = [];
      size = 0;
      // Others get the store, and this processor, for as long as the batch had them.
      await setTimeout(performance.now() - start, undefined, { signal: this.signal });
    }
    yield await this.store(batch);
  }

  private read({ number, bytes }: Line): ReadPlant[] {
    try {
      if (!bytes) throw new NotJsonError(`It is longer than ${this.limit} bytes (BODY_LIMIT).`);
      if (!isUtf8(bytes)) throw new NotJsonError('Not JSON: it is not UTF-8.');
      return [{ line: number, plant: toNewPlant(parseCandidate(bytes.toString())) }];
    } catch (error) {
      if (!(error instanceof PlantStoreError)) throw error;
      this.reject('invalid', number, error.message);
      return [];
    }
  }

  /** Stores plants, and tries again those that the store did not take. Returns how many lines are done. */
  private async store(batch: readonly ReadPlant[]): Promise<number> {
    const start = performance.now();
    try {
      for (let rest = batch; ;) {
        const faults = await Promise.all(rest.map((each) => this.insert(each)));
        const fault = faults.find((each) => each !== undefined);
        if (fault === undefined) break;
        if (performance.now() > start + PATIENCE) throw fault;
        if (rest === batch) this.report(`Trying again for up to a minute: ${reasonOf(fault)}`);
        rest = rest.filter((_, at) => faults[at] !== undefined);
        await setTimeout(RETRY_INTERVAL, undefined, { signal: this.signal });
      }
    } finally {
      for (const [line, reason] of this.rejections.sort(([one], [other]) => one - other)) {
        if (this.reported < REPORT_LENGTH) this.report(`Line ${line}: ${reason}`);
        if (this.reported++ === REPORT_LENGTH) this.report('More lines were not stored.');
      }
      this.rejections = [];
    }
    return Object.values(this.counts).reduce((sum, count) => sum + count);
  }

  /** @returns why the plant must be tried again; undefined once it is counted */
  private async insert({ line, plant }: ReadPlant): Promise<PlantStoreError | undefined> {
    try {
      const isStored = (await this.repository.insert(plant)) === 'created';
      const other = isStored ? undefined : await this.repository.find(plant.id);
      const reason = 'A plant with this id exists already, with another name or tag.';
      if (isStored) this.counts.stored++;
      else if (other && hasSameContent(other, plant)) this.counts.present++;
      else this.reject('conflicting', line, reason);
    } catch (error) {
      if (error instanceof UnavailableError) return error;
      if (error instanceof OutcomeUnknownError) return error;
      if (!(error instanceof PlantStoreError)) throw error;
      // The database refuses this plant, by a rule of its operator for example.
      this.reject('invalid', line, reasonOf(error));
    }
    return undefined;
  }

  private reject(outcome: 'conflicting' | 'invalid', line: number, reason: string): void {
    this.counts[outcome]++;
    this.rejections.push([line, reason]);
  }
}
