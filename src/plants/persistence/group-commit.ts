import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../errors';
import { type BatchEvent, batchChannel, type CommitEvent, commitChannel } from '../plants.channels';

/** What a {@link GroupCommit} is made of. */
export interface GroupCommitOptions<Item, Outcome> {
  /**
   * Commits a batch and resolves to one outcome an item, in order. It rejects with
   * {@link UnavailableError} when nothing of the batch was stored; any other rejection means that
   * nobody knows.
   */
  readonly commit: (batch: readonly Item[]) => Promise<readonly Outcome[]>;
  /** How much an item weighs, in the unit of the two bounds below; at least 1. */
  readonly weigh: (item: Item) => number;
  /** A batch is full once it weighs this much. */
  readonly batchWeight: number;
  /** Items are refused while this much waits. */
  readonly queueWeight: number;
  /**
   * Items are refused while those that wait would take longer than this to begin, in milliseconds,
   * judged by how long batches have taken lately: so a slow store has a short queue.
   */
  readonly queueTime: number;
  /** Milliseconds after which a batch is late. */
  readonly deadline: number;
  /** Batches that may be late before items are refused; while fewer are, the next begins beside them. */
  readonly lateLimit: number;
}

/** How much the latest batch counts in the pace. */
const PACE_GAIN = 0.25;

interface Waiting<Item, Outcome> {
  readonly item: Item;
  readonly weight: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (reason: PlantStoreError) => void;
  /** When somebody listens. */
  readonly event: CommitEvent | undefined;
}

/**
 * Lets concurrent writes share commits: while one batch commits, the next gathers. An idle store
 * commits a single item at once.
 *
 * A failed batch fails its items and nothing else. A batch that outlives the deadline is answered
 * "outcome unknown" but not cancelled; while as many are late as may be, items are refused rather
 * than queued behind them.
 */
export class GroupCommit<Item, Outcome> {
  private waiting: Waiting<Item, Outcome>[] = [];
  private waitingWeight = 0;
  private committing = 0;
  /** Milliseconds that a batch has taken lately. */
  private pace = 0;
  private readonly late = new Set<unknown>();
  private scheduled = false;
  private closing = false;
  private onIdle: (() => void) | undefined;

  constructor(private readonly options: GroupCommitOptions<Item, Outcome>) {}

  /**
   * Resolves to the item's outcome once its batch is committed.
   *
   * @throws UnavailableError when it was refused before anything was stored
   * @throws OutcomeUnknownError when its batch failed, or came too late, with unknown outcome
   */
  submit(item: Item): Promise<Outcome> {
    if (!commitChannel.hasSubscribers) return this.enqueue(item);
    const event: CommitEvent = {};
    return commitChannel.tracePromise(() => this.enqueue(item, event), event);
  }

  private enqueue(item: Item, event?: CommitEvent): Promise<Outcome> {
    if (this.closing || this.isFull) return Promise.reject(new UnavailableError());
    const weight = this.options.weigh(item);
    this.waitingWeight += weight;
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, weight, resolve, reject, event });
      this.schedule();
    });
  }

  /** How many items wait for their batch to begin. */
  get queueLength(): number {
    return this.waiting.length;
  }

  /** Whether an item submitted now would be refused for those that wait. */
  get isFull(): boolean {
    const { queueWeight, queueTime, batchWeight } = this.options;
    const time = (this.waitingWeight / batchWeight) * this.pace;
    return this.isStuck || this.waitingWeight >= queueWeight || time >= queueTime;
  }

  /** Whether as many batches as may be are past their deadline. */
  get isStuck(): boolean {
    return this.late.size >= this.options.lateLimit;
  }

  /** Refuses what comes from now on, and resolves once everything before it is settled. */
  async close(): Promise<void> {
    this.closing = true;
    if (this.isIdle) return;
    await new Promise<void>((resolve) => {
      this.onIdle = resolve;
    });
  }

  private get isIdle(): boolean {
    return this.committing === 0 && this.waiting.length === 0;
  }

  /** Starts a batch at the end of this turn of the event loop, with all that the turn brings. */
  private schedule(): void {
    if (this.scheduled || !this.mayBegin) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      void this.commitBatch();
    });
  }

  /** One batch at a time, but for those that are late. */
  private get mayBegin(): boolean {
    return this.committing === this.late.size && !this.isStuck;
  }

  private async commitBatch(): Promise<void> {
    const batch = this.takeBatch();
    this.committing++;
    if (commitChannel.hasSubscribers) {
      for (const { event } of batch) if (event) event.batchSize = batch.length;
    }
    const start = performance.now();
    const clock = setTimeout(() => {
      this.late.add(batch);
      fail(batch, new OutcomeUnknownError());
      if (this.isStuck) fail(this.takeAll(), new UnavailableError());
      else if (this.waiting.length > 0) this.schedule();
    }, this.options.deadline);

    try {
      const outcomes = await this.options.commit(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, at) => {
        resolve(outcomes[at] as Outcome);
      });
    } catch (cause) {
      fail(batch, cause instanceof PlantStoreError ? cause : new OutcomeUnknownError({ cause }));
    }

    clearTimeout(clock);
    const duration = performance.now() - start;
    this.pace += (duration - this.pace) * PACE_GAIN;
    if (batchChannel.hasSubscribers) {
      batchChannel.publish({ items: batch.length, duration } satisfies BatchEvent);
    }
    this.committing--;
    this.late.delete(batch);
    // At once: a loop that is flooded with requests may take seconds to come to its end.
    if (this.waiting.length > 0 && !this.scheduled && this.mayBegin) void this.commitBatch();
    else if (this.isIdle) this.onIdle?.();
  }

  private takeBatch(): Waiting<Item, Outcome>[] {
    let weight = 0;
    let count = 0;
    for (const waiting of this.waiting) {
      if (weight >= this.options.batchWeight) break;
      weight += waiting.weight;
      count++;
    }
    this.waitingWeight -= weight;
    return this.waiting.splice(0, count);
  }

  private takeAll(): Waiting<Item, Outcome>[] {
    this.waitingWeight = 0;
    return this.waiting.splice(0);
  }
}

function fail<Item, Outcome>(
  batch: readonly Waiting<Item, Outcome>[],
  reason: PlantStoreError,
): void {
  for (const { reject } of batch) reject(reason);
}
