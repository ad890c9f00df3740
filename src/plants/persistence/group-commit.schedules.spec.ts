import fc from 'fast-check';
import { pass, releaseClock, stopClock } from '../../../test/support/clock';
import {
  BATCH_WEIGHT,
  DEADLINE,
  plantOf,
  QUEUE_WEIGHT,
  turn,
} from '../../../test/support/group-commit';
import { OutcomeUnknownError, UnavailableError } from '../errors/errors';
import type { Insertion } from '../plants.repository';
import { GroupCommit } from './group-commit';

/** All times are multiples of this many milliseconds, so that no timer is due between two steps. */
const STEP = 250;

type End = 'success' | 'refusal' | 'failure';
type Fate = 'stored' | 'refused' | 'unknown';
const FATES = { success: 'stored', refusal: 'refused', failure: 'unknown' } as const;

interface Item {
  readonly weight: number;
  readonly since: number;
  readonly isWelcome: boolean;
  batch?: Batch;
  /** Each time that the item was settled. */
  readonly settled: { fate: Fate; at: number; wasStuck: boolean }[];
}

interface Batch {
  readonly items: readonly Item[];
  readonly since: number;
  endedAt: number;
  fate: Fate;
  readonly end: (how: End) => void;
}

/** A group commit over a store whose batches end when a schedule says so. */
class Trial {
  readonly items: Item[] = [];
  readonly batches: Batch[] = [];
  isClosed = false;
  isClosing = false;
  /** Milliseconds that passed while the event loop made no turn. */
  delay = 0;
  readonly faults: string[] = [];
  readonly commits = new GroupCommit(
    (plants) => this.begin(plants.flatMap(({ id }) => this.items[Number(id)] ?? [])),
    (time) => {
      const ended = this.batches.findLast(({ endedAt }) => endedAt < Infinity);
      if (ended?.items[0]?.since !== performance.now() - time) this.faults.push('a wrong wait');
    },
  );

  submit(weight: number): void {
    const isWelcome = !this.isClosing && !this.commits.isFull;
    const item: Item = { weight, since: performance.now(), isWelcome, settled: [] };
    this.items.push(item);
    const settle = (fate: Fate): void => {
      item.settled.push({ fate, at: performance.now(), wasStuck: this.isStuck });
    };
    const plant = plantOf(this.items.length - 1, weight);
    const store = (): void => {
      settle('stored');
    };
    this.commits.submit(plant).then(store, (error: unknown) => {
      if (error instanceof UnavailableError) settle('refused');
      else if (error instanceof OutcomeUnknownError) settle('unknown');
      else this.faults.push(String(error));
    });
  }

  async end(at: number, how: End): Promise<void> {
    const { open } = this;
    open[at % open.length]?.end(how);
    // Promises settle before the next timer, however late the event loop is.
    for (let tick = 0; tick < 10; tick++) await Promise.resolve();
  }

  async pass(time: number, isLoopLate: boolean): Promise<void> {
    if (isLoopLate) this.delay += time;
    for (let passed = 0; passed < time; passed += STEP) {
      pass(STEP);
      if (!isLoopLate) await turn();
      this.checkWait();
    }
  }

  private checkWait(): void {
    const waiting = this.items.filter(
      ({ isWelcome, settled }) => isWelcome && settled.length === 0,
    );
    const since = waiting[0]?.since ?? Infinity;
    if ((this.commits.waitingSince ?? Infinity) > since) this.faults.push('forgot who waits');
  }

  close(): void {
    this.isClosing = true;
    void this.commits.close().then(() => {
      this.isClosed = true;
      if (this.open.length > 0) this.faults.push('closed before a batch has ended');
    });
  }

  /** Whether the batch under way has timed out. */
  get isStuck(): boolean {
    return this.open.some(({ since }) => performance.now() - since >= DEADLINE);
  }

  get open(): Batch[] {
    return this.batches.filter(({ endedAt }) => endedAt === Infinity);
  }

  private begin(items: readonly Item[]): Promise<Insertion[]> {
    const now = performance.now();
    if (items.length === 0) this.faults.push('an empty batch');
    if (this.isClosed) this.faults.push('a batch after the end');
    if (this.open.length > 0) this.faults.push('two batches at once');
    const last = items.at(-1)?.weight ?? 0;
    const weight = items.reduce((sum, item) => sum + item.weight, 0);
    if (weight - last >= BATCH_WEIGHT) this.faults.push('too large a batch');
    const isFull = weight >= BATCH_WEIGHT;
    if (!isFull && this.commits.queueLength > 0) this.faults.push('a batch that is not full');

    const { promise, resolve, reject } = Promise.withResolvers<Insertion[]>();
    const batch: Batch = {
      items,
      since: now,
      endedAt: Infinity,
      fate: 'unknown',
      end: (how) => {
        batch.endedAt = performance.now();
        if (batch.endedAt - now < DEADLINE) batch.fate = FATES[how];
        if (how === 'success') resolve(items.map(() => 'created'));
        else reject(how === 'refusal' ? new UnavailableError() : new Error('broken'));
      },
    };
    this.batches.push(batch);
    for (const item of items) item.batch = batch;
    return promise;
  }

  /** Ends all that is under way. */
  async finish(): Promise<void> {
    this.close();
    for (let round = 0; round < 100 && !this.isClosed; round++) {
      await turn();
      await this.end(0, 'success');
    }
    await turn();
  }
}

/** Why the way an item was settled is wrong; undefined if it is right. */
function faultOf({ since, isWelcome, batch, settled }: Item, delay: number): string | undefined {
  const [only, ...more] = settled;
  if (only === undefined || more.length > 0) return `settled ${settled.length} times`;
  const waited = only.at - since;
  if (waited > 2 * DEADLINE + delay) return `settled after ${waited} ms`;
  if (only.fate !== (batch?.fate ?? 'refused')) return `${only.fate}, but not in the store`;
  if (batch || only.wasStuck || waited > DEADLINE) return undefined;
  return isWelcome ? `refused after ${waited} ms` : undefined;
}

const weight = fc.constantFrom(1, 1, 256, 512, BATCH_WEIGHT, QUEUE_WEIGHT / 2);
const how = fc.constantFrom<End>('success', 'success', 'refusal', 'failure');
const steps = fc.constantFrom(1, 4, 20, 39, 40, 41);
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ submit: weight }) },
  { weight: 3, arbitrary: fc.record({ end: fc.nat(3), how }) },
  { weight: 3, arbitrary: fc.record({ steps, isLoopLate: fc.boolean() }) },
  { weight: 4, arbitrary: fc.constant('turn' as const) },
  { weight: 1, arbitrary: fc.constant('close' as const) },
);

beforeEach(stopClock);
afterEach(releaseClock);

it('GroupCommit settles each item once, in time, and as the store did, on any schedule', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (schedule) => {
      const trial = new Trial();

      for (const each of schedule) {
        if (each === 'turn') await turn();
        else if (each === 'close') trial.close();
        else if ('submit' in each) trial.submit(each.submit);
        else if ('end' in each) await trial.end(each.end, each.how);
        else await trial.pass(each.steps * STEP, each.isLoopLate);
      }
      await trial.finish();

      expect(trial.isClosed).toBe(true);
      expect(trial.faults).toEqual([]);
      expect(trial.items.map((item) => faultOf(item, trial.delay))).toEqual(
        trial.items.map(() => undefined),
      );
    }),
    { numRuns: 2000, verbose: true },
  );
});
