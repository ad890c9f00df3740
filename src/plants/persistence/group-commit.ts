import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import { type BatchEvent, batchChannel, type CommitEvent, commitChannel } from '../plants.channels';

export interface GroupCommitOptions<Item, Outcome> {
  /**
   * Commits a batch and resolves to one outcome or error per item, in order. It rejects with
   * {@link UnavailableError} when nothing of the batch was stored. Any other rejection means that the
   * outcome is unknown.
   */
  readonly commit: (batch: readonly Item[]) => Promise<readonly (Outcome | PlantStoreError)[]>;
  /** The weight of an item, in the unit of the two limits below; at least 1. */
  readonly weigh: (item: Item) => number;
  /** The weight at which a batch is full. */
  readonly batchWeight: number;
  /** Items are refused while the queue weighs this much. */
  readonly queueWeight: number;
  /** Items are refused while the queue would take this many milliseconds, at the recent pace. */
  readonly queueTime: number;
  /**
   * Milliseconds after which a batch has timed out, and after which an item that waits for its batch is
   * refused. So each item has its outcome within twice this time.
   */
  readonly deadline: number;
  /**
   * Items are refused while this many batches have timed out and not ended. While fewer have, the next
   * batch starts beside them.
   */
  readonly timedOutLimit: number;
}

/** Milliseconds without an answer after which an item is late. */
const LATE = 2000;

interface QueuedItem<Item, Outcome> {
  readonly item: Item;
  readonly since: number;
  readonly weight: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (reason: PlantStoreError) => void;
  readonly event: CommitEvent;
}

/**
 * Lets concurrent writes share commits: while one batch commits, the next one gathers. An idle store
 * commits a single item at once. A failed batch fails its items and nothing else. The items of a batch
 * that times out fail with "outcome unknown", but the batch is not cancelled.
 */
export class GroupCommit<Item, Outcome> {
  private queue: QueuedItem<Item, Outcome>[] = [];
  private totalQueueWeight = 0;
  /** The batch under way, unless it has timed out. */
  private current: readonly QueuedItem<Item, Outcome>[] | undefined;
  /** When an item was last answered late; -Infinity once one was answered in time again. */
  private lateAt = -Infinity;
  /** Milliseconds: a moving average, of which the latest batch makes up a quarter. */
  private averageDuration = 0;
  private readonly timedOut = new Set<unknown>();
  private isScheduled = false;
  private isClosing = false;
  private onIdle: (() => void) | undefined;

  constructor(private readonly options: GroupCommitOptions<Item, Outcome>) {}

  /**
   * Resolves to the item's outcome once its batch is committed.
   *
   * @throws UnavailableError when it was refused before anything was stored
   * @throws OutcomeUnknownError when its batch timed out, or failed and may be stored
   */
  submit(item: Item): Promise<Outcome> {
    const event: CommitEvent = {};
    if (!commitChannel.hasSubscribers) return this.enqueue(item, event);
    return commitChannel.tracePromise(() => this.enqueue(item, event), event);
  }

  private enqueue(item: Item, event: CommitEvent): Promise<Outcome> {
    if (this.isClosing || this.isFull) return Promise.reject(new UnavailableError());
    const weight = this.options.weigh(item);
    this.totalQueueWeight += weight;
    return new Promise((resolve, reject) => {
      this.queue.push({ item, since: performance.now(), weight, resolve, reject, event });
      this.schedule();
    });
  }

  get queueLength(): number {
    return this.queue.length;
  }

  /** Whether an item submitted now would be refused because of those in the queue. */
  get isFull(): boolean {
    const { queueWeight, queueTime, batchWeight } = this.options;
    const time = (this.totalQueueWeight / batchWeight) * this.averageDuration;
    return this.isStuck || this.totalQueueWeight >= queueWeight || time >= queueTime;
  }

  get isStuck(): boolean {
    return this.timedOut.size >= this.options.timedOutLimit;
  }

  /**
   * Whether items are refused or answered late: for readiness probes. Once late, it stays so until an
   * item is answered in time, or none has been late for as long as the deadline.
   */
  get isLate(): boolean {
    return this.hasLateItem || performance.now() - this.lateAt < this.options.deadline;
  }

  /** Whether items are refused, or one waits for its answer for long now. */
  get hasLateItem(): boolean {
    const now = performance.now();
    const since = this.current?.[0]?.since ?? this.queue[0]?.since ?? now;
    return this.isStuck || now - since >= LATE;
  }

  /** Forgets late answers, once something else has shown that the store answers in time. */
  forgetLate(): void {
    this.lateAt = -Infinity;
  }

  /** Refuses new items, and resolves once all earlier ones are settled. */
  async close(): Promise<void> {
    this.isClosing = true;
    if (this.isIdle) return;
    await new Promise<void>((resolve) => {
      this.onIdle = resolve;
    });
  }

  private get isIdle(): boolean {
    return !this.current && this.timedOut.size === 0 && this.queue.length === 0;
  }

  /** Starts a batch at the end of this turn of the event loop, so that it has all items of the turn. */
  private schedule(): void {
    if (this.isScheduled || !this.canStart) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      void this.commitBatch();
    });
  }

  /** One batch at a time, besides those that have timed out. */
  private get canStart(): boolean {
    return !this.current && !this.isStuck;
  }

  private async commitBatch(): Promise<void> {
    const batch = this.takeBatch();
    // Items may have been refused since the batch was scheduled.
    if (batch.length === 0) return;
    this.current = batch;
    for (const { event } of batch) event.batchSize = batch.length;
    const start = performance.now();
    const timer = setTimeout(() => {
      this.current = undefined;
      this.timedOut.add(batch);
      this.noteAnswered(batch);
      fail(batch, new OutcomeUnknownError());
      if (this.isStuck) fail(this.take(Infinity), new UnavailableError());
      this.refuseOverdue();
      this.schedule();
    }, this.options.deadline);

    try {
      const outcomes = await this.options.commit(batch.map(({ item }) => item));
      batch.forEach(({ resolve, reject }, at) => {
        const outcome = outcomes[at] as Outcome | PlantStoreError;
        if (outcome instanceof PlantStoreError) reject(outcome);
        else resolve(outcome);
      });
    } catch (cause) {
      fail(batch, cause instanceof PlantStoreError ? cause : new OutcomeUnknownError({ cause }));
    }

    clearTimeout(timer);
    const duration = performance.now() - start;
    this.averageDuration += (duration - this.averageDuration) / 4;
    batchChannel.publish({ items: batch.length, duration } satisfies BatchEvent);
    if (!this.timedOut.delete(batch)) this.current = undefined;
    this.noteAnswered(batch);
    this.refuseOverdue();
    // Not scheduled: under a flood of requests, a turn of the event loop may take seconds.
    if (this.queue.length > 0 && !this.isScheduled && this.canStart) void this.commitBatch();
    else if (this.isIdle) this.onIdle?.();
  }

  private noteAnswered([oldest]: readonly QueuedItem<Item, Outcome>[]): void {
    const now = performance.now();
    this.lateAt = oldest && now - oldest.since >= LATE ? now : -Infinity;
  }

  /** Called when a batch ends or times out: once in every `deadline`, or more often, while items wait. */
  private refuseOverdue(): void {
    const earliest = performance.now() - this.options.deadline;
    const rest = this.queue.findIndex(({ since }) => since >= earliest);
    const overdue = this.take(rest < 0 ? this.queue.length : rest);
    if (overdue.length === 0) return;
    const cause = new Error('overloaded: the plant has waited too long for its batch');
    fail(overdue, new UnavailableError({ cause }));
  }

  private takeBatch(): QueuedItem<Item, Outcome>[] {
    let weight = 0;
    let count = 0;
    for (const item of this.queue) {
      if (weight >= this.options.batchWeight) break;
      weight += item.weight;
      count++;
    }
    return this.take(count);
  }

  private take(count: number): QueuedItem<Item, Outcome>[] {
    const items = this.queue.splice(0, count);
    for (const { weight } of items) this.totalQueueWeight -= weight;
    return items;
  }
}

function fail(
  batch: readonly Pick<QueuedItem<unknown, never>, 'reject'>[],
  reason: PlantStoreError,
): void {
  for (const { reject } of batch) reject(reason);
}
