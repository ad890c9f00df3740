import { OutcomeUnknownError, UnavailableError } from '../errors/errors';
import { textLength } from '../plant/plant';
import type { EndedBatch, InsertOutcome } from '../plants.repository';
import type { KeyedPlant } from './idempotency';
import { type StoreDriver, StoreFailure } from './store-driver';

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
  readonly reject: (error: Error) => void;
}

/** A batch whose commit is in progress. */
interface Batch {
  readonly plants: readonly QueuedPlant[];
  /** Whether its plants have an outcome already: it has timed out, and keeps only its place. */
  hasTimedOut: boolean;
}

/**
 * Commits concurrent plants together: while as many batches commit as the driver can, the next one gathers. An idle
 * store commits a single plant at once. A failed batch fails its plants and nothing else. If a batch times out, its
 * plants fail with "outcome unknown". The batch is not canceled, and no other batch takes its place until it ends.
 */
export class GroupCommit {
  /** Called at the end of each batch. */
  readonly observers: ((batch: EndedBatch) => void)[] = [];
  private queue: QueuedPlant[] = [];
  private totalQueueWeight = 0;
  /** In the order in which they began. */
  private readonly batches = new Set<Batch>();
  private timedOutCount = 0;
  private isScheduled = false;
  /** A moving average in milliseconds. The latest batch has a weight of a quarter. */
  private averageDuration = 0;
  private isClosing = false;
  private onSettled: (() => void) | undefined;

  constructor(private readonly driver: Pick<StoreDriver, 'commit' | 'maxBatches'>) {}

  /**
   * Resolves to the plant's outcome once its batch is committed. The caller checks {@link canAccept} first.
   * @throws UnavailableError when it has waited too long for its batch
   * @throws OutcomeUnknownError when its batch timed out
   * @throws StoreFailure of the driver
   */
  submit(plant: KeyedPlant): Promise<InsertOutcome> {
    // Start a batch at the end of this event loop turn, so that it includes all plants of the turn.
    if (!this.isScheduled && this.batches.size < this.driver.maxBatches) {
      this.isScheduled = true;
      setImmediate(() => {
        this.isScheduled = false;
        this.startBatches();
      });
    }
    const weight = weigh(plant);
    this.totalQueueWeight += weight;
    return new Promise((resolve, reject) => {
      this.queue.push({ plant, since: performance.now(), weight, resolve, reject });
    });
  }

  get queueLength(): number {
    return this.queue.length;
  }

  /** Whether plants may be submitted now. Not if the queue is full or closed, or if every batch has timed out. */
  get canAccept(): boolean {
    const batches = this.totalQueueWeight / MAX_BATCH_WEIGHT / this.driver.maxBatches;
    const isTooLong = this.totalQueueWeight >= MAX_QUEUE_WEIGHT;
    const isTooSlow = batches * this.averageDuration >= MAX_QUEUE_TIME_MS;
    return !(isTooLong || isTooSlow || this.isStuck || this.isClosing);
  }

  /** When the oldest unsettled plant was submitted, or the oldest one at all if no batch can begin. */
  get waitingSince(): number | undefined {
    const waiting = [...this.batches].find(({ hasTimedOut }) => this.isStuck || !hasTimedOut);
    return (waiting?.plants ?? this.queue)[0]?.since;
  }

  /**
   * Closes the queue, and resolves when all accepted plants are settled.
   * @returns whether no batch is in progress; one that has timed out may never end
   */
  async close(): Promise<boolean> {
    this.isClosing = true;
    if (!this.isSettled) await new Promise<void>((resolve) => (this.onSettled = resolve));
    return this.batches.size === 0;
  }

  private get isSettled(): boolean {
    return this.queue.length === 0 && this.batches.size === this.timedOutCount;
  }

  /** Whether every place is taken by a batch that has timed out. */
  private get isStuck(): boolean {
    return this.timedOutCount >= this.driver.maxBatches;
  }

  private startBatches(): void {
    while (this.queue.length > 0 && this.batches.size < this.driver.maxBatches) {
      void this.runBatch({ plants: this.takeBatch(), hasTimedOut: false });
    }
    if (this.isSettled) this.onSettled?.();
  }

  private async runBatch(batch: Batch): Promise<void> {
    const { plants } = batch;
    this.batches.add(batch);
    const start = performance.now();
    const timer = setTimeout(() => {
      batch.hasTimedOut = true;
      this.timedOutCount++;
      rejectAll(plants, new OutcomeUnknownError());
      this.rejectOverdue();
      if (this.isSettled) this.onSettled?.();
    }, COMMIT_TIMEOUT_MS);

    try {
      const outcomes = await this.driver.commit(plants.map(({ plant }) => plant));
      plants.forEach(({ resolve, reject }, at) => {
        const outcome = outcomes[at] ?? new OutcomeUnknownError();
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      });
    } catch (error) {
      const isKnown = error instanceof StoreFailure;
      rejectAll(plants, isKnown ? error : new OutcomeUnknownError({ cause: error }));
    }

    clearTimeout(timer);
    this.batches.delete(batch);
    if (batch.hasTimedOut) this.timedOutCount--;
    const duration = performance.now() - start;
    this.averageDuration += (duration - this.averageDuration) / 4;
    for (const observe of this.observers) observe({ size: plants.length, duration });
    this.rejectOverdue();
    // Start the next batch at once: under a flood of requests, an event loop turn may take seconds.
    this.startBatches();
  }

  /** Rejects the plants that have waited too long for their batch, or that no batch can take. */
  private rejectOverdue(): void {
    const earliest = this.isStuck ? Infinity : performance.now() - COMMIT_TIMEOUT_MS;
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

function rejectAll(plants: readonly QueuedPlant[], error: Error): void {
  for (const { reject } of plants) reject(error);
}
