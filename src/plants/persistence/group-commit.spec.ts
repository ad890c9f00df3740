import fc from 'fast-check';
import { pass, releaseClock, stopClock, turn } from '../../../test/support/clock';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import type { EndedBatch, InsertOutcome } from '../plants.repository';
import { GroupCommit } from './group-commit';
import type { KeyedPlant } from './keyed-plant';

/** Milliseconds after which a batch has timed out. */
const DEADLINE = 10_000;
/** The weight at which a batch is full. */
const BATCH_WEIGHT = 1024;
/** The weight at which the queue is full. */
const QUEUE_WEIGHT = 16_384;

/** @param weight in a batch and in the queue */
function plantOf(id: number, weight = 1): KeyedPlant {
  return { id: BigInt(id), name: 'x'.repeat(4096 * (weight - 1)) };
}

/** A batch that the test ends. */
interface ManualBatch {
  readonly ids: readonly number[];
  readonly succeed: (outcomes?: (InsertOutcome | PlantStoreError)[]) => void;
  readonly fail: (error: Error) => void;
}

/** A group commit over a store whose batches the test settles by hand. */
function makeGroupCommit() {
  const batches: ManualBatch[] = [];
  const ended: EndedBatch[] = [];
  const commits = new GroupCommit(
    (plants) => {
      const { promise, resolve, reject } =
        Promise.withResolvers<(InsertOutcome | PlantStoreError)[]>();
      const succeed = (outcomes = plants.map((): InsertOutcome | PlantStoreError => 'created')) => {
        resolve(outcomes);
      };
      batches.push({ ids: plants.map(({ id }) => Number(id)), succeed, fail: reject });
      return promise;
    },
    (batch) => ended.push(batch),
  );
  const submit = (id: number, weight = 1) => commits.submit(plantOf(id, weight));
  /** Commits one plant, which takes so many milliseconds. */
  const commitOne = async (time: number): Promise<void> => {
    const plant = submit(1);
    await turn();
    pass(time);
    batches.at(-1)?.succeed();
    await plant;
    await turn();
  };
  return { commits, batches, ended, submit, commitOne };
}

beforeEach(stopClock);
afterEach(releaseClock);

describe('GroupCommit', () => {
  it('commits a single plant immediately, and plants submitted during its commit together', async () => {
    const { commits, batches, submit } = makeGroupCommit();

    const outcomes = [submit(1)];
    await turn();
    outcomes.push(submit(2), submit(3), submit(4), submit(5));
    await turn();

    expect(batches).toHaveLength(1);
    expect(commits.queueLength).toBe(4);
    batches[0]?.succeed();
    await turn();
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2, 3, 4, 5]]);
    expect(commits.queueLength).toBe(0);
    batches[1]?.succeed(['taken', 'replayed', 'keyReused', new PlantStoreError('internal')]);
    await expect(outcomes.pop()).rejects.toThrow(PlantStoreError);
    expect(await Promise.all(outcomes)).toEqual(['created', 'taken', 'replayed', 'keyReused']);
  });

  it('commits the plants of one turn of the event loop together', async () => {
    const { batches, submit } = makeGroupCommit();

    void submit(1);
    await Promise.resolve();
    void submit(2);
    await turn();

    expect(batches.map(({ ids }) => ids)).toEqual([[1, 2]]);
  });

  it('adds no weight for up to 4095 characters of name and tag together', async () => {
    const { commits, batches } = makeGroupCommit();
    const half = 'x'.repeat(2048);
    for (let id = 0n; id < BATCH_WEIGHT; id++) {
      void commits.submit({ id, name: half, tag: id % 2n === 0n ? half : half.slice(1) });
    }

    await turn();

    // 2 and 1 by turns.
    expect(batches[0]?.ids).toHaveLength(Math.ceil((BATCH_WEIGHT * 2) / 3));
  });

  it('rejects plants immediately while the queue is full, and accepts plants afterwards', async () => {
    const { batches, submit } = makeGroupCommit();
    const accepted = [submit(1, QUEUE_WEIGHT - 1), submit(2)];

    await expect(submit(3)).rejects.toThrow(UnavailableError);

    await turn();
    accepted.push(submit(4));
    batches[0]?.succeed();
    await turn();
    batches[1]?.succeed();
    expect(await Promise.all(accepted)).toEqual(['created', 'created', 'created']);
  });

  it('closes after all plants are settled, even if a batch never ends', async () => {
    const { commits, submit } = makeGroupCommit();
    const first = submit(1);
    await turn();
    const plants = Promise.allSettled([first, submit(2)]);
    const closing = commits.close();
    await turn();
    pass(DEADLINE);

    expect(await closing).toBe(false);
    expect(await commits.close()).toBe(false);
    expect((await plants).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  it('rejects plants that would wait too long by the moving average of recent batches', async () => {
    const { commits, submit, commitOne } = makeGroupCommit();
    await commitOne(2000);
    await commitOne(1000);

    // First 500 ms, then 500 + (1000 - 500) / 4: 1.6 batches take a second.
    while (!commits.isFull) void submit(2, BATCH_WEIGHT / 4);

    expect(commits.queueLength).toBe(7);
    await expect(submit(3)).rejects.toThrow(UnavailableError);
  });

  it('reports the cause of an unknown outcome', async () => {
    const { batches, submit } = makeGroupCommit();
    const plant = submit(1);
    await turn();

    batches[0]?.fail(new Error('unexpected'));

    const cause = new Error('unexpected');
    await expect(plant).rejects.toThrow(new OutcomeUnknownError({ cause }));
  });

  it('reports an unknown outcome when a batch times out, and rejects plants until it ends', async () => {
    const { commits, batches, submit } = makeGroupCommit();
    const timedOut = submit(1);
    await turn();
    const queued = submit(2);

    pass(DEADLINE - 1);
    expect(commits.isFull).toBe(false);
    pass(1);

    await expect(timedOut).rejects.toThrow(OutcomeUnknownError);
    await expect(queued).rejects.toThrow(UnavailableError);
    await expect(submit(3)).rejects.toThrow(UnavailableError);
    batches[0]?.succeed();
    await turn();
    const next = submit(4);
    await turn();
    batches[1]?.succeed();
    expect(await next).toBe('created');
  });

  it('rejects only the overdue plants when a batch ends', async () => {
    const { batches, submit } = makeGroupCommit();
    const [first, second, overdue] = [1, 2, 3].map((id) => submit(id, BATCH_WEIGHT));
    await turn();
    pass(500);
    batches[0]?.succeed();
    await first;
    await turn();
    const last = submit(4);

    pass(DEADLINE - 1);
    batches[1]?.succeed();

    expect(await second).toBe('created');
    await expect(overdue).rejects.toThrow(
      new UnavailableError({
        cause: new Error('overloaded: the plant has waited too long for its batch'),
      }),
    );
    await turn();
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2], [4]]);
    batches[2]?.succeed();
    expect(await last).toBe('created');
  });

  it('reports the size and duration of each batch, also of a failed one', async () => {
    const { batches, ended, submit } = makeGroupCommit();

    const one = submit(1);
    await turn();
    pass(7);
    const others = [submit(2), submit(3)];
    batches[0]?.succeed();
    await one;
    await turn();
    batches[1]?.fail(new UnavailableError());
    await Promise.allSettled(others);
    await turn();

    expect(ended).toEqual([
      { size: 1, duration: 7 },
      { size: 2, duration: 0 },
    ]);
  });
});

/** All times are multiples of this many milliseconds, so that no timer is due between two steps. */
const STEP = 250;

type End = 'success' | 'refusal' | 'failure';
const FATES = { success: 'stored', refusal: 'refused', failure: 'unknown' } as const;

interface Item {
  readonly weight: number;
  readonly since: number;
  readonly isWelcome: boolean;
  batch?: Batch;
  settled?: { fate: string; at: number; wasStuck: boolean };
}

interface Batch {
  readonly items: readonly Item[];
  readonly since: number;
  endedAt: number;
  fate: string;
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
    () => undefined,
  );

  submit(weight: number): void {
    const isWelcome = !this.isClosing && !this.commits.isFull;
    const item: Item = { weight, since: performance.now(), isWelcome };
    this.items.push(item);
    const settle = (outcome: unknown): void => {
      const fate = fateOf(outcome);
      item.settled = { fate, at: performance.now(), wasStuck: this.isStuck };
    };
    this.commits.submit(plantOf(this.items.length - 1, weight)).then(settle, settle);
  }

  async end(how: End): Promise<void> {
    this.open?.end(how);
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
    const oldest = this.isStuck
      ? this.open?.items[0]
      : this.items.find(({ isWelcome, settled }) => isWelcome && !settled);
    if (this.commits.waitingSince !== oldest?.since) this.faults.push('a wrong oldest plant');
  }

  close(): void {
    this.isClosing = true;
    void this.commits.close().then((hasEnded) => {
      this.isClosed = true;
      if (hasEnded && this.open) this.faults.push('closed without the last batch');
      if (this.items.some(({ isWelcome, settled }) => isWelcome && !settled)) {
        this.faults.push('closed before each plant was settled');
      }
    });
  }

  /** Whether the batch under way has timed out. */
  get isStuck(): boolean {
    return this.open !== undefined && performance.now() - this.open.since >= DEADLINE;
  }

  /** The batch under way: there must not be two. */
  private get open(): Batch | undefined {
    return this.batches.find(({ endedAt }) => endedAt === Infinity);
  }

  private begin(items: readonly Item[]): Promise<InsertOutcome[]> {
    const now = performance.now();
    if (items.length === 0) this.faults.push('an empty batch');
    if (this.isClosed) this.faults.push('a batch after the end');
    if (this.open) this.faults.push('two batches at once');
    const last = items.at(-1)?.weight ?? 0;
    const weight = items.reduce((sum, item) => sum + item.weight, 0);
    if (weight - last >= BATCH_WEIGHT) this.faults.push('too large a batch');
    const isFull = weight >= BATCH_WEIGHT;
    if (!isFull && this.commits.queueLength > 0) this.faults.push('a batch that is not full');

    const { promise, resolve, reject } = Promise.withResolvers<InsertOutcome[]>();
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
      await this.end('success');
    }
    await turn();
  }
}

function fateOf(outcome: unknown): string {
  if (outcome === 'created') return 'stored';
  if (outcome instanceof UnavailableError) return 'refused';
  return outcome instanceof OutcomeUnknownError ? 'unknown' : String(outcome);
}

/** Why the way an item was settled is wrong; undefined if it is right. */
function faultOf({ since, isWelcome, batch, settled }: Item, delay: number): string | undefined {
  if (!settled) return 'never settled';
  const waited = settled.at - since;
  if (waited > 2 * DEADLINE + delay) return `settled after ${waited} ms`;
  if (settled.fate !== (batch?.fate ?? 'refused')) return `${settled.fate}, but not in the store`;
  if (batch || settled.wasStuck || waited > DEADLINE) return undefined;
  return isWelcome ? `refused after ${waited} ms` : undefined;
}

const weight = fc.constantFrom(1, 1, 256, 512, BATCH_WEIGHT, QUEUE_WEIGHT / 2);
const how = fc.constantFrom<End>('success', 'success', 'refusal', 'failure');
const steps = fc.constantFrom(1, 4, 20, 39, 40, 41);
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ submit: weight }) },
  { weight: 3, arbitrary: fc.record({ end: how }) },
  { weight: 3, arbitrary: fc.record({ steps, isLoopLate: fc.boolean() }) },
  { weight: 4, arbitrary: fc.constant('turn' as const) },
  { weight: 1, arbitrary: fc.constant('close' as const) },
);

it('GroupCommit settles each plant once, in time, with the outcome of the store, on any schedule', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (schedule) => {
      const trial = new Trial();

      for (const each of schedule) {
        if (each === 'turn') await turn();
        else if (each === 'close') trial.close();
        else if ('submit' in each) trial.submit(each.submit);
        else if ('end' in each) await trial.end(each.end);
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
