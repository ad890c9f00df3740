import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import { textLength } from '../plant';
import type { EndedBatch, InsertOutcome } from '../plants.repository';
import type { KeyedPlant } from './keyed-plant';
import type { StoreDriver } from './store-driver';

/** The weight at which a batch is full. */
const MAX_BATCH_WEIGHT = 1024;
/** The weight of the queue from which plants are rejected. */
const MAX_QUEUE_WEIGHT = 16_384;
/** Plants are rejected while committing the queue would take this long at the recent pace. */
const MAX_QUEUE_TIME_MS = 1000;
/**
 * The time after which a batch times out, and after which a plant that is still waiting for its batch is
 * rejected. So each plant has its outcome within twice this time.
 */
const COMMIT_TIMEOUT_MS = 10_000;

interface QueuedPlant {
  readonly plant: KeyedPlant;
  readonly since: number;
  readonly weight: number;
  readonly resolve: (outcome: InsertOutcome) => void;
  readonly reject: (reason: PlantStoreError) => void;
}

/**
 * Commits concurrent plants together: while one batch commits, the next one gathers. An idle store commits a
 * single plant at once. A failed batch fails its plants and nothing else. If a batch times out, its plants fail
 * with "outcome unknown". The batch is not canceled, and no other batch starts until it ends.
 */
export class GroupCommit {
  /** Called at the end of each batch. */
  readonly observers: ((batch: EndedBatch) => void)[] = [];
  private queue: QueuedPlant[] = [];
  private totalQueueWeight = 0;
  /** When the oldest plant of the current batch was submitted; undefined if there is no batch. */
  private currentBatchSince: number | undefined;
  /** Whether the current batch has timed out. */
  private hasTimedOut = false;
  /** A moving average in milliseconds. The latest batch has a weight of a quarter. */
  private averageDuration = 0;
  private isClosing = false;
  private onSettled: (() => void) | undefined;

  constructor(private readonly driver: Pick<StoreDriver, 'commit'>) {}

  /**
   * Resolves to the plant's outcome once its batch is committed. The caller checks {@link isFull} first.
   *
   * @throws UnavailableError when the plant was rejected before anything was stored
   * @throws OutcomeUnknownError when its batch timed out, or failed and may be stored
   */
  submit(plant: KeyedPlant): Promise<InsertOutcome> {
    // Start the batch at the end of this event loop turn, so that it includes all plants of the turn.
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

  /** Whether no more plants may be submitted now: the queue is full or closed. */
  get isFull(): boolean {
    const time = (this.totalQueueWeight / MAX_BATCH_WEIGHT) * this.averageDuration;
    const isTooLong = this.totalQueueWeight >= MAX_QUEUE_WEIGHT || time >= MAX_QUEUE_TIME_MS;
    return isTooLong || this.hasTimedOut || this.isClosing;
  }

  /** When the oldest unsettled plant was submitted; undefined if there is none. */
  get waitingSince(): number | undefined {
    return this.currentBatchSince ?? this.queue[0]?.since;
  }

  /**
   * Closes the queue, and resolves when all accepted plants are settled.
   *
   * @returns whether no batch is in progress; one that has timed out may never end
   */
  async close(): Promise<boolean> {
    this.isClosing = true;
    if (!this.isIdle && !this.hasTimedOut)
      await new Promise<void>((resolve) => (this.onSettled = resolve));
    return this.isIdle;
  }

  private get isIdle(): boolean {
    return this.waitingSince === undefined;
  }

  private async commitBatch(): Promise<void> {
    const batch = this.takeBatch();
    const start = performance.now();
    this.currentBatchSince = batch[0]?.since ?? start;
    const timer = setTimeout(() => {
      this.hasTimedOut = true;
      rejectAll(batch, new OutcomeUnknownError());
      rejectAll(this.take(Infinity), new UnavailableError());
      this.onSettled?.();
    }, COMMIT_TIMEOUT_MS);

    try {
      const outcomes = await this.driver.commit(batch.map(({ plant }) => plant));
      batch.forEach(({ resolve, reject }, at) => {
        const outcome = outcomes[at] ?? new OutcomeUnknownError();
        if (outcome instanceof PlantStoreError) reject(outcome);
        else resolve(outcome);
      });
    } catch (cause) {
      rejectAll(
        batch,
        cause instanceof PlantStoreError ? cause : new OutcomeUnknownError({ cause }),
      );
    }

    clearTimeout(timer);
    const duration = performance.now() - start;
    this.averageDuration += (duration - this.averageDuration) / 4;
    this.currentBatchSince = undefined;
    this.hasTimedOut = false;
    for (const observe of this.observers) observe({ size: batch.length, duration });
    this.rejectOverdue();
    // Start the next batch at once: under a flood of requests, an event loop turn may take seconds.
    if (this.queue.length > 0) void this.commitBatch();
    else this.onSettled?.();
  }

  private rejectOverdue(): void {
    const earliest = performance.now() - COMMIT_TIMEOUT_MS;
    const overdue = this.take(this.queue.filter(({ since }) => since < earliest).length);
    // Created only if it is needed, because an error captures a stack trace.
    if (overdue.length > 0) rejectAll(overdue, new UnavailableError());
  }

  private takeBatch(): QueuedPlant[] {
    let weight = 0;
    const last = this.queue.findIndex((queued) => (weight += queued.weight) >= MAX_BATCH_WEIGHT);
    return this.take(last < 0 ? this.queue.length : last + 1);
  }

  private take(count: number): QueuedPlant[] {
    const plants = this.queue.splice(0, count);
    for (const { weight } of plants) this.totalQueueWeight -= weight;
    return plants;
  }
}

/** Returns the weight of a plant: 1, and 1 more for each full 4096 characters of name and tag. */
function weigh(plant: KeyedPlant): number {
  return 1 + Math.floor(textLength(plant) / 4096);
}

function rejectAll(plants: readonly QueuedPlant[], reason: PlantStoreError): void {
  for (const { reject } of plants) reject(reason);
}
