import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import { textLength } from '../plant';
import type { EndedBatch, InsertOutcome } from '../plants.repository';
import type { KeyedPlant } from './keyed-plant';

/** The weight at which a batch is full. */
const BATCH_WEIGHT = 1024;
/** Plants are refused while the queue weighs this much. */
const QUEUE_WEIGHT = 16_384;
/** Milliseconds. Plants are refused while the queue would take this long, at the recent pace. */
const QUEUE_TIME = 1000;
/**
 * Milliseconds after which a batch has timed out, and after which a plant that waits for its batch is
 * refused. So each plant has its outcome within twice this time.
 */
const DEADLINE = 10_000;

interface QueuedPlant {
  readonly plant: KeyedPlant;
  readonly since: number;
  readonly weight: number;
  readonly resolve: (outcome: InsertOutcome) => void;
  readonly reject: (reason: PlantStoreError) => void;
}

/**
 * Lets concurrent creations share commits: while one batch commits, the next one gathers. An idle store
 * commits a single plant at once. A failed batch fails its plants and nothing else. The plants of a batch
 * that times out fail with "outcome unknown". The batch is not cancelled, and no other starts beside it.
 */
export class GroupCommit {
  private queue: QueuedPlant[] = [];
  private totalQueueWeight = 0;
  /** Since when the oldest plant of the batch under way has waited; undefined without a batch. */
  private busySince: number | undefined;
  /** Whether the batch under way has timed out. */
  private isStuck = false;
  /** Milliseconds: a moving average, of which the latest batch makes up a quarter. */
  private averageDuration = 0;
  private isClosing = false;
  private onSettled: (() => void) | undefined;

  /**
   * @param commit commits a batch and resolves to one outcome or error per plant, in order. It rejects
   *   with {@link UnavailableError} when nothing of the batch was stored. Any other rejection means that
   *   the outcome is unknown.
   * @param onEnd is called at the end of each batch
   */
  constructor(
    private readonly commit: (
      batch: readonly KeyedPlant[],
    ) => Promise<readonly (InsertOutcome | PlantStoreError)[]>,
    private readonly onEnd: (batch: EndedBatch) => void,
  ) {}

  /**
   * Resolves to the plant's outcome once its batch is committed.
   *
   * @throws UnavailableError when it was refused before anything was stored
   * @throws OutcomeUnknownError when its batch timed out, or failed and may be stored
   */
  submit(plant: KeyedPlant): Promise<InsertOutcome> {
    if (this.isClosing || this.isFull) return Promise.reject(new UnavailableError());
    // At the end of this turn of the event loop, so that the batch has all plants of the turn.
    if (this.isIdle) setImmediate(() => void this.commitBatch());
    const weight = weigh(plant);
    this.totalQueueWeight += weight;
    return new Promise((resolve, reject) => {
      this.queue.push({ plant, since: performance.now(), weight, resolve, reject });
    });
  }

  get queueLength(): number {
    return this.queue.length;
  }

  /** Whether a plant submitted now would be refused because of those before it. */
  get isFull(): boolean {
    const time = (this.totalQueueWeight / BATCH_WEIGHT) * this.averageDuration;
    return this.isStuck || this.totalQueueWeight >= QUEUE_WEIGHT || time >= QUEUE_TIME;
  }

  /** Since when the oldest plant without an answer has waited; undefined without one. */
  get waitingSince(): number | undefined {
    return this.busySince ?? this.queue[0]?.since;
  }

  /**
   * Rejects new plants and resolves when all accepted plants are settled.
   *
   * @returns whether no batch is in progress; one that has timed out may never end
   */
  async close(): Promise<boolean> {
    this.isClosing = true;
    if (!this.isIdle && !this.isStuck)
      await new Promise<void>((resolve) => (this.onSettled = resolve));
    return this.isIdle;
  }

  private get isIdle(): boolean {
    return this.waitingSince === undefined;
  }

  private async commitBatch(): Promise<void> {
    const batch = this.takeBatch();
    const start = performance.now();
    this.busySince = batch[0]?.since ?? start;
    const timer = setTimeout(() => {
      this.isStuck = true;
      fail(batch, new OutcomeUnknownError());
      fail(this.take(Infinity), new UnavailableError());
      this.onSettled?.();
    }, DEADLINE);

    try {
      const outcomes = await this.commit(batch.map(({ plant }) => plant));
      batch.forEach(({ resolve, reject }, at) => {
        const outcome = outcomes[at] ?? new OutcomeUnknownError();
        if (outcome instanceof PlantStoreError) reject(outcome);
        else resolve(outcome);
      });
    } catch (cause) {
      fail(batch, cause instanceof PlantStoreError ? cause : new OutcomeUnknownError({ cause }));
    }

    clearTimeout(timer);
    const duration = performance.now() - start;
    this.averageDuration += (duration - this.averageDuration) / 4;
    this.busySince = undefined;
    this.isStuck = false;
    this.onEnd({ size: batch.length, duration });
    this.refuseOverdue();
    // At once: under a flood of requests, a turn of the event loop may take seconds.
    if (this.queue.length > 0) void this.commitBatch();
    else this.onSettled?.();
  }

  private refuseOverdue(): void {
    const earliest = performance.now() - DEADLINE;
    const overdue = this.take(this.queue.filter(({ since }) => since < earliest).length);
    if (overdue.length === 0) return;
    const cause = new Error('overloaded: the plant has waited too long for its batch');
    fail(overdue, new UnavailableError({ cause }));
  }

  private takeBatch(): QueuedPlant[] {
    let weight = 0;
    const last = this.queue.findIndex((queued) => (weight += queued.weight) >= BATCH_WEIGHT);
    return this.take(last < 0 ? this.queue.length : last + 1);
  }

  private take(count: number): QueuedPlant[] {
    const plants = this.queue.splice(0, count);
    for (const { weight } of plants) this.totalQueueWeight -= weight;
    return plants;
  }
}

/** 1, and 1 more for each full 4096 characters of text. */
function weigh(plant: KeyedPlant): number {
  return 1 + Math.floor(textLength(plant) / 4096);
}

function fail(batch: readonly QueuedPlant[], reason: PlantStoreError): void {
  for (const { reject } of batch) reject(reason);
}
