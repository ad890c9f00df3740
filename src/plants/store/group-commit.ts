import { OutcomeUnknownError, UnavailableError } from '../errors/errors';
import { textLength } from '../plant/plant';
import type { EndedBatch, InsertOutcome } from '../plants.repository';
import type { KeyedPlant } from './idempotency';
import {
  type FailureReach,
  type InsertResult,
  type StoreDriver,
  StoreFailure,
} from './store-driver';
import { SLOW_COMMIT_MS } from './store-health';
import { SuspectIds } from './suspect-ids';

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

/** The end of a batch, whether or not its plants still waited for it. */
export interface BatchEnd extends EndedBatch {
  /** The failure of the batch, or that of its plants with the widest reach. Undefined if there is none. */
  readonly failure: StoreFailure | undefined;
}

interface QueuedPlant {
  readonly plant: KeyedPlant;
  /** When it was submitted, by `performance.now()`. */
  readonly since: number;
  readonly weight: number;
  readonly resolve: (outcome: InsertOutcome) => void;
  readonly reject: (error: Error) => void;
}

interface Batch {
  readonly plants: readonly QueuedPlant[];
  /** Whether its ids were locked a moment ago. */
  readonly isSuspect: boolean;
}

/**
 * Commits concurrent plants together: while as many batches are in progress as the driver can commit, the next one
 * gathers in the queue. An idle store commits a single plant at once. A failed batch fails its plants and no others.
 *
 * The states of a batch:
 *
 * - `committing`: the driver commits it, and its plants wait. It ends when the driver is done, or times out.
 * - `timedOut`: its plants have failed with "outcome unknown". The driver still commits it: it is not canceled, and it
 *   keeps its place, so that no other batch begins instead. It ends when the driver is done, perhaps never.
 * - `ended`: the observers know how, and its plants have their outcomes. Its place is free for the next batch.
 *
 * Suspect ids, those that were locked a moment ago, share no batch with others, and only one batch of them commits at a
 * time.
 *
 * The states of the queue:
 *
 * - open: accepts plants, unless it is full or the recent batches were too slow. A place that becomes free takes a
 *   batch at once. A plant that finds a place free waits for the end of the turn of the event loop.
 * - stuck: each place has a batch that has timed out. It accepts no plants and contains none: those that waited were
 *   rejected. It is open again when a batch ends.
 * - closed: accepts no plants. Those that it contains are still committed. It is settled when no plant waits for its
 *   outcome.
 */
export class GroupCommit {
  /** Called once for each batch when it ends, before its plants have their outcomes. */
  readonly observers: ((batch: BatchEnd) => void)[] = [];
  private queue: QueuedPlant[] = [];
  private queueWeight = 0;
  /** The batches that are committing, in the order in which they began. */
  private readonly committing = new Set<Batch>();
  /** The batches that have timed out, in the order in which they did. */
  private readonly timedOut = new Set<Batch>();
  /** Whether a batch begins at the end of this turn of the event loop. */
  private isBatchScheduled = false;
  /** A moving average of durations in milliseconds. The latest batch has a weight of a quarter. */
  private averageDuration = 0;
  /** When the latest batch ended that was not slow, by `performance.now()`, which begins with 0. */
  private lastPromptEnd = 0;
  private readonly suspects = new SuspectIds();
  private isClosed = false;
  private readonly settled: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(private readonly driver: Pick<StoreDriver, 'commit' | 'maxBatches'>) {}

  /**
   * Resolves to the plant's outcome once its batch is committed. The caller checks {@link canAccept} first.
   * @throws UnavailableError when it has waited too long for its batch
   * @throws OutcomeUnknownError when its batch timed out
   * @throws StoreFailure of the driver
   */
  submit(plant: KeyedPlant): Promise<InsertOutcome> {
    const weight = weigh(plant);
    this.queueWeight += weight;
    this.scheduleBatch();
    return new Promise((resolve, reject) => {
      this.queue.push({ plant, since: performance.now(), weight, resolve, reject });
    });
  }

  get queueLength(): number {
    return this.queue.length;
  }

  /** Whether plants may be submitted now. */
  get canAccept(): boolean {
    if (this.isClosed || this.isStuck) return false;
    const batchesAhead = this.queueWeight / MAX_BATCH_WEIGHT / this.driver.maxBatches;
    const isTooLong = this.queueWeight >= MAX_QUEUE_WEIGHT;
    const isTooSlow = batchesAhead * this.averageDuration >= MAX_QUEUE_TIME_MS;
    return !isTooLong && !isTooSlow;
  }

  /**
   * Since when no batch has ended although a plant waits for its outcome; undefined if none waits. A batch that waits
   * longer than others says nothing about the store while these end.
   */
  get stalledSince(): number | undefined {
    const { waitingSince } = this;
    return waitingSince === undefined ? undefined : Math.max(waitingSince, this.lastPromptEnd);
  }

  /**
   * When the plant was submitted that has waited longest for its outcome; undefined if none waits. While the queue is
   * stuck, the oldest plant of a batch that has timed out counts instead.
   */
  private get waitingSince(): number | undefined {
    const [oldestBatch] = this.isStuck ? this.timedOut : this.committing;
    const [oldest] = oldestBatch?.plants ?? this.queue;
    return oldest?.since;
  }

  /** Closes the queue, and resolves when it is settled. A batch that has timed out may still be in progress. */
  close(): Promise<void> {
    this.isClosed = true;
    this.resolveIfSettled();
    return this.settled.promise;
  }

  private get isStuck(): boolean {
    return this.timedOut.size === this.driver.maxBatches;
  }

  private get hasPlace(): boolean {
    return this.committing.size + this.timedOut.size < this.driver.maxBatches;
  }

  /** Starts a batch at the end of this turn of the event loop, so that it includes all plants of the turn. */
  private scheduleBatch(): void {
    if (this.isBatchScheduled || !this.hasPlace) return;
    this.isBatchScheduled = true;
    setImmediate(() => {
      this.isBatchScheduled = false;
      this.startBatches();
    });
  }

  private startBatches(): void {
    this.suspects.forgetExpired();
    while (this.queue.length > 0 && this.hasPlace) {
      const next = this.findNext();
      if (!next) return;
      const isSuspect = this.suspects.has(next.plant.id);
      void this.runBatch({ plants: this.takeBatch(isSuspect), isSuspect });
    }
  }

  private async runBatch(batch: Batch): Promise<void> {
    const { plants } = batch;
    this.committing.add(batch);
    const start = performance.now();
    const timer = setTimeout(() => {
      this.timeOut(batch);
    }, COMMIT_TIMEOUT_MS);

    const results = await this.commit(plants);

    clearTimeout(timer);
    this.committing.delete(batch);
    this.timedOut.delete(batch);
    const duration = performance.now() - start;
    this.averageDuration += (duration - this.averageDuration) / 4;
    if (duration < SLOW_COMMIT_MS) this.lastPromptEnd = performance.now();
    const failure = findWidestFailure(results);
    for (const observe of this.observers) observe({ size: plants.length, duration, failure });
    if (failure || !this.suspects.isEmpty) this.recordSuspects(plants, results);
    // Has no effect on plants of a batch that has timed out.
    results.forEach((result, at) => {
      if (result instanceof StoreFailure) plants[at]?.reject(result);
      else plants[at]?.resolve(result);
    });

    this.rejectOverdue();
    // Start the next batch at once: under a flood of requests, an event loop turn may take seconds.
    this.startBatches();
    this.resolveIfSettled();
  }

  /** Returns one result per plant. */
  private async commit(plants: readonly QueuedPlant[]): Promise<readonly InsertResult[]> {
    try {
      const results = await this.driver.commit(plants.map(({ plant }) => plant));
      if (results.length === plants.length) return results;
      throw new Error(`${results.length} results of ${plants.length} plants`);
    } catch (error) {
      const failure = toStoreFailure(error);
      return plants.map(() => failure);
    }
  }

  private timeOut(batch: Batch): void {
    this.committing.delete(batch);
    this.timedOut.add(batch);
    rejectAll(batch.plants, new OutcomeUnknownError());
    this.rejectOverdue();
    this.resolveIfSettled();
  }

  /** Rejects the plants that have waited too long for their batch. If the queue is stuck, rejects all plants. */
  private rejectOverdue(): void {
    const earliest = performance.now() - COMMIT_TIMEOUT_MS;
    const overdueCount = this.queue.filter(({ since }) => since < earliest).length;
    const rejected = this.take(this.isStuck ? this.queue.length : overdueCount);
    // Created only if it is needed, because an error captures a stack trace.
    if (rejected.length > 0) rejectAll(rejected, new UnavailableError());
  }

  private resolveIfSettled(): void {
    const isSettled = this.queue.length === 0 && this.committing.size === 0;
    if (this.isClosed && isSettled) this.settled.resolve();
  }

  /** Finds the oldest plant that a batch may contain now. Suspect ids wait while a batch of them commits. */
  private findNext(): QueuedPlant | undefined {
    const mustSuspectsWait = [...this.committing].some(({ isSuspect }) => isSuspect);
    return this.queue.find(({ plant }) => !mustSuspectsWait || !this.suspects.has(plant.id));
  }

  private recordSuspects(plants: readonly QueuedPlant[], results: readonly InsertResult[]): void {
    plants.forEach(({ plant }, at) => {
      this.suspects.record(plant.id, results[at]);
    });
  }

  /** Takes the oldest plants whose ids are suspect, or those whose ids are not, until the batch is full. */
  private takeBatch(isSuspect: boolean): QueuedPlant[] {
    const taken: QueuedPlant[] = [];
    const skipped: QueuedPlant[] = [];
    let weight = 0;
    for (const queued of this.queue) {
      if (weight >= MAX_BATCH_WEIGHT) break;
      if (this.suspects.has(queued.plant.id) === isSuspect) {
        weight += queued.weight;
        taken.push(queued);
      } else {
        skipped.push(queued);
      }
    }
    this.queue = skipped.concat(this.queue.slice(taken.length + skipped.length));
    this.queueWeight -= weight;
    return taken;
  }

  /** Removes the oldest plants from the queue. */
  private take(count: number): QueuedPlant[] {
    const plants = this.queue.splice(0, count);
    for (const { weight } of plants) this.queueWeight -= weight;
    return plants;
  }
}

/** Returns the weight of a plant: 1, and 1 more for each full 4096 characters of its strings. */
function weigh(plant: KeyedPlant): number {
  return 1 + Math.floor(textLength(plant) / 4096);
}

function rejectAll(plants: readonly QueuedPlant[], error: Error): void {
  for (const { reject } of plants) reject(error);
}

/** Returns the failure of a batch. An error of another class is a fault of the driver: the plants may be stored. */
function toStoreFailure(error: unknown): StoreFailure {
  if (error instanceof StoreFailure) return error;
  return new StoreFailure('unknown', String(error), { cause: error });
}

const WIDTHS: Readonly<Record<FailureReach, number>> = { batch: 1, store: 2, process: 3 };

/** Finds the failure that says most about the store: of several, the first with the widest reach. */
function findWidestFailure(results: readonly InsertResult[]): StoreFailure | undefined {
  let widest: StoreFailure | undefined;
  for (const result of results) {
    if (!(result instanceof StoreFailure)) continue;
    if (!widest || WIDTHS[result.reach] > WIDTHS[widest.reach]) widest = result;
  }
  return widest;
}
