import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import { batchChannel, type CommitEvent, commitChannel } from '../plants.channels';

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
   * Takes as long as a commit, and stores nothing. It shows that a store is in time again, when no
   * items come that would show it.
   */
  readonly probe: () => Promise<void>;
}

/** Milliseconds without an answer after which an item is late. */
const LATE = 2000;
/** Milliseconds from a late answer to a probe. */
const PROBE_DELAY = 500;

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
 * that times out fail with "outcome unknown". The batch is not cancelled, and no other starts beside it.
 */
export class GroupCommit<Item, Outcome> {
  private queue: QueuedItem<Item, Outcome>[] = [];
  private totalQueueWeight = 0;
  /** Since when the oldest item of the batch under way has waited; undefined without a batch. */
  private busySince: number | undefined;
  /** Whether the batch under way has timed out. */
  private isStuck = false;
  /** Whether the latest batch was answered late. */
  private wasLate = false;
  /** Milliseconds: a moving average, of which the latest batch makes up a quarter. */
  private averageDuration = 0;
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
    return commitChannel.tracePromise(() => {
      if (this.isClosing || this.isFull) return Promise.reject(new UnavailableError());
      // At the end of this turn of the event loop, so that the batch has all items of the turn.
      if (this.isIdle) setImmediate(() => void this.commitBatch());
      const weight = this.options.weigh(item);
      this.totalQueueWeight += weight;
      return new Promise((resolve, reject) => {
        this.queue.push({ item, since: performance.now(), weight, resolve, reject, event });
      });
    }, event);
  }

  get queueLength(): number {
    return this.queue.length;
  }

  /** Whether an item submitted now would be refused because of those before it. */
  get isFull(): boolean {
    const { queueWeight, queueTime, batchWeight } = this.options;
    const time = (this.totalQueueWeight / batchWeight) * this.averageDuration;
    return this.isStuck || this.totalQueueWeight >= queueWeight || time >= queueTime;
  }

  /**
   * Whether items are answered late: for readiness probes. Once late, it stays so until an item or a
   * probe is answered in time.
   */
  get isLate(): boolean {
    return this.hasLateItem || this.wasLate;
  }

  /** Whether an item has waited long for its answer by now. */
  get hasLateItem(): boolean {
    const now = performance.now();
    return now - (this.busySince ?? this.queue[0]?.since ?? now) >= LATE;
  }

  /** Refuses new items, and resolves once all earlier ones are settled. */
  async close(): Promise<void> {
    this.isClosing = true;
    if (!this.isIdle) await new Promise<void>((resolve) => (this.onIdle = resolve));
  }

  private get isIdle(): boolean {
    return this.busySince === undefined && this.queue.length === 0;
  }

  private commitBatch(): Promise<void> {
    const batch = this.takeBatch();
    for (const { event } of batch) event.batchSize = batch.length;
    return this.run(batch, async () => {
      const outcomes = await this.options.commit(batch.map(({ item }) => item));
      batch.forEach(({ resolve, reject }, at) => {
        const outcome = outcomes[at] as Outcome | PlantStoreError;
        if (outcome instanceof PlantStoreError) reject(outcome);
        else resolve(outcome);
      });
    });
  }

  /** @param batch is under way meanwhile; empty for a probe */
  private async run(
    batch: readonly QueuedItem<Item, Outcome>[],
    work: () => Promise<void>,
  ): Promise<void> {
    const { deadline, probe } = this.options;
    const start = performance.now();
    const since = (this.busySince = batch[0]?.since ?? start);
    const timer = setTimeout(() => {
      this.isStuck = true;
      fail(batch, new OutcomeUnknownError());
      fail(this.take(Infinity), new UnavailableError());
    }, deadline);

    try {
      await work();
    } catch (cause) {
      fail(batch, cause instanceof PlantStoreError ? cause : new OutcomeUnknownError({ cause }));
    }

    clearTimeout(timer);
    const now = performance.now();
    const duration = now - start;
    this.averageDuration += (duration - this.averageDuration) / 4;
    if (batch.length > 0) batchChannel.publish({ items: batch.length, duration });
    this.busySince = undefined;
    this.isStuck = false;
    this.wasLate = now - since >= LATE;
    this.refuseOverdue();
    // At once: under a flood of requests, a turn of the event loop may take seconds.
    if (this.queue.length > 0) void this.commitBatch();
    else this.onIdle?.();
    if (!this.wasLate) return;
    setTimeout(() => {
      if (this.isIdle && !this.isClosing) void this.run([], probe);
    }, PROBE_DELAY).unref();
  }

  private refuseOverdue(): void {
    const earliest = performance.now() - this.options.deadline;
    const overdue = this.take(this.queue.filter(({ since }) => since < earliest).length);
    if (overdue.length === 0) return;
    const cause = new Error('overloaded: the plant has waited too long for its batch');
    fail(overdue, new UnavailableError({ cause }));
  }

  private takeBatch(): QueuedItem<Item, Outcome>[] {
    const { batchWeight } = this.options;
    let weight = 0;
    const last = this.queue.findIndex((item) => (weight += item.weight) >= batchWeight);
    return this.take(last < 0 ? this.queue.length : last + 1);
  }

  private take(count: number): QueuedItem<Item, Outcome>[] {
    const items = this.queue.splice(0, count);
    for (const { weight } of items) this.totalQueueWeight -= weight;
    return items;
  }
}

function fail(
  batch: readonly Pick<QueuedItem<never, never>, 'reject'>[],
  reason: PlantStoreError,
): void {
  for (const { reject } of batch) reject(reason);
}
