import fc from 'fast-check';
import { advanceClock, restoreClock, stopClock, waitForTurn } from '../../../test/support/clock';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../errors/errors';
import type { EndedBatch, InsertOutcome } from '../plants.repository';
import { GroupCommit } from './group-commit';
import type { KeyedPlant } from './keyed-plant';

const COMMIT_TIMEOUT_MS = 10_000;
/** The weight at which a batch is full. */
const MAX_BATCH_WEIGHT = 1024;
/** The weight of the queue from which plants are rejected. */
const MAX_QUEUE_WEIGHT = 16_384;

/** Creates a plant that has this weight in a batch and in the queue. */
function createPlant(id: number, weight = 1): KeyedPlant {
  return { id: BigInt(id), name: 'x'.repeat(4096 * (weight - 1)) };
}

/** A batch that is in progress until the test ends it. */
interface ManualBatch {
  readonly ids: readonly number[];
  readonly succeed: (outcomes?: (InsertOutcome | PlantStoreError)[]) => void;
  readonly fail: (error: Error) => void;
}

/** Creates a group commit on a store whose batches the test ends. */
function createGroupCommit() {
  const batches: ManualBatch[] = [];
  const ended: EndedBatch[] = [];
  const commits = new GroupCommit({
    commit: (plants) => {
      const { promise, resolve, reject } =
        Promise.withResolvers<(InsertOutcome | PlantStoreError)[]>();
      const succeed = (outcomes = plants.map((): InsertOutcome | PlantStoreError => 'created')) => {
        resolve(outcomes);
      };
      batches.push({ ids: plants.map(({ id }) => Number(id)), succeed, fail: reject });
      return promise;
    },
  });
  commits.observers.push((batch) => ended.push(batch));
  const submit = (id: number, weight = 1) => commits.submit(createPlant(id, weight));
  const commitOne = async (durationMs: number): Promise<void> => {
    const plant = submit(1);
    await waitForTurn();
    advanceClock(durationMs);
    batches.at(-1)?.succeed();
    await plant;
    await waitForTurn();
  };
  return { commits, batches, ended, submit, commitOne };
}

beforeEach(stopClock);
afterEach(restoreClock);

describe('GroupCommit', () => {
  it('commits a single plant immediately, and plants submitted during its commit together', async () => {
    const { commits, batches, submit } = createGroupCommit();

    const outcomes = [submit(1)];
    await waitForTurn();
    outcomes.push(submit(2), submit(3), submit(4), submit(5));
    await waitForTurn();

    expect(batches).toHaveLength(1);
    expect(commits.queueLength).toBe(4);
    batches[0]?.succeed();
    await waitForTurn();
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2, 3, 4, 5]]);
    expect(commits.queueLength).toBe(0);
    batches[1]?.succeed(['taken', 'replayed', 'keyReused', new PlantStoreError('internal')]);
    await expect(outcomes.pop()).rejects.toThrow(PlantStoreError);
    expect(await Promise.all(outcomes)).toEqual(['created', 'taken', 'replayed', 'keyReused']);
  });

  it('commits the plants of one turn of the event loop together', async () => {
    const { batches, submit } = createGroupCommit();

    void submit(1);
    await Promise.resolve();
    void submit(2);
    await waitForTurn();

    expect(batches.map(({ ids }) => ids)).toEqual([[1, 2]]);
  });

  it('adds no weight for up to 4095 characters of name and tag together', async () => {
    const { commits, batches } = createGroupCommit();
    const half = 'x'.repeat(2048);
    for (let id = 0n; id < MAX_BATCH_WEIGHT; id++) {
      void commits.submit({ id, name: half, tag: id % 2n === 0n ? half : half.slice(1) });
    }

    await waitForTurn();

    // The weights of the plants alternate between 2 and 1.
    expect(batches[0]?.ids).toHaveLength(Math.ceil((MAX_BATCH_WEIGHT * 2) / 3));
  });

  it('is full when the queue has its maximum weight, and not after the next batch has begun', async () => {
    const { commits, submit } = createGroupCommit();
    void submit(1, MAX_QUEUE_WEIGHT - 1);
    expect(commits.isFull).toBe(false);

    void submit(2);
    expect(commits.isFull).toBe(true);

    await waitForTurn();
    expect(commits.isFull).toBe(false);
  });

  it('closes after all plants are settled, even if a batch never ends', async () => {
    const { commits, submit } = createGroupCommit();
    const first = submit(1);
    await waitForTurn();
    const plants = Promise.allSettled([first, submit(2)]);
    const closing = commits.close();
    await waitForTurn();
    advanceClock(COMMIT_TIMEOUT_MS);

    expect(commits.isFull).toBe(true);
    expect(await closing).toBe(false);
    expect(await commits.close()).toBe(false);
    expect((await plants).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  it('is full when plants would wait too long by the moving average of recent batches', async () => {
    const { commits, submit, commitOne } = createGroupCommit();
    await commitOne(2000);
    await commitOne(1000);

    // The average is 500 ms, then 500 + (1000 - 500) / 4 ms. So 1.6 full batches take one second.
    while (!commits.isFull) void submit(2, MAX_BATCH_WEIGHT / 4);

    expect(commits.queueLength).toBe(7);
  });

  it('reports the cause of an unknown outcome', async () => {
    const { batches, submit } = createGroupCommit();
    const plant = submit(1);
    await waitForTurn();

    batches[0]?.fail(new Error('unexpected'));

    const cause = new Error('unexpected');
    await expect(plant).rejects.toThrow(new OutcomeUnknownError({ cause }));
  });

  it('reports an unknown outcome when a batch times out, and is full until it ends', async () => {
    const { commits, batches, submit } = createGroupCommit();
    const timedOut = submit(1);
    await waitForTurn();
    const queued = submit(2);

    advanceClock(COMMIT_TIMEOUT_MS - 1);
    expect(commits.isFull).toBe(false);
    advanceClock(1);

    await expect(timedOut).rejects.toThrow(OutcomeUnknownError);
    await expect(queued).rejects.toThrow(UnavailableError);
    expect(commits.isFull).toBe(true);
    batches[0]?.succeed();
    await waitForTurn();
    expect(commits.isFull).toBe(false);
    const next = submit(4);
    await waitForTurn();
    batches[1]?.succeed();
    expect(await next).toBe('created');
  });

  it('rejects only the overdue plants when a batch ends', async () => {
    const { batches, submit } = createGroupCommit();
    const [first, second, overdue] = [1, 2, 3].map((id) => submit(id, MAX_BATCH_WEIGHT));
    await waitForTurn();
    advanceClock(500);
    batches[0]?.succeed();
    await first;
    await waitForTurn();
    const last = submit(4);

    advanceClock(COMMIT_TIMEOUT_MS - 1);
    batches[1]?.succeed();

    expect(await second).toBe('created');
    await expect(overdue).rejects.toThrow(UnavailableError);
    await waitForTurn();
    expect(batches.map(({ ids }) => ids)).toEqual([[1], [2], [4]]);
    batches[2]?.succeed();
    expect(await last).toBe('created');
  });

  it('reports the size and duration of each batch, including failed ones', async () => {
    const { batches, ended, submit } = createGroupCommit();

    const one = submit(1);
    await waitForTurn();
    advanceClock(7);
    const others = [submit(2), submit(3)];
    batches[0]?.succeed();
    await one;
    await waitForTurn();
    batches[1]?.fail(new UnavailableError());
    await Promise.allSettled(others);
    await waitForTurn();

    expect(ended).toEqual([
      { size: 1, duration: 7 },
      { size: 2, duration: 0 },
    ]);
  });
});

/** All times are multiples of this step, so that no timer is due between two steps. */
const STEP_MS = 250;

type Result = 'success' | 'rejection' | 'failure';
const OUTCOMES = { success: 'stored', rejection: 'rejected', failure: 'unknown' } as const;

interface Submission {
  readonly weight: number;
  readonly since: number;
  batch?: Batch;
  settled?: { outcome: string; at: number; wasTimedOut: boolean };
}

interface Batch {
  readonly submissions: readonly Submission[];
  readonly since: number;
  endedAt: number;
  outcome: string;
  readonly end: (result: Result) => void;
}

/** A group commit on a store whose batches end as a schedule determines. */
class Simulation {
  readonly submissions: Submission[] = [];
  readonly batches: Batch[] = [];
  isClosed = false;
  /** How long the event loop was blocked. */
  blockedMs = 0;
  readonly violations: string[] = [];
  readonly commits = new GroupCommit({
    commit: (plants) => this.begin(plants.flatMap(({ id }) => this.submissions[Number(id)] ?? [])),
  });

  submit(weight: number): void {
    if (this.commits.isFull) return;
    const submission: Submission = { weight, since: performance.now() };
    this.submissions.push(submission);
    const settle = (result: unknown): void => {
      const outcome = toOutcome(result);
      submission.settled = { outcome, at: performance.now(), wasTimedOut: this.hasTimedOut };
    };
    this.commits.submit(createPlant(this.submissions.length - 1, weight)).then(settle, settle);
  }

  async end(result: Result): Promise<void> {
    this.open?.end(result);
    // Promise callbacks run before the next timer, however long the event loop was blocked.
    for (let tick = 0; tick < 10; tick++) await Promise.resolve();
  }

  async pass(time: number, isLoopBlocked: boolean): Promise<void> {
    if (isLoopBlocked) this.blockedMs += time;
    for (let passed = 0; passed < time; passed += STEP_MS) {
      advanceClock(STEP_MS);
      if (!isLoopBlocked) await waitForTurn();
      this.checkWait();
    }
  }

  private checkWait(): void {
    const oldest = this.hasTimedOut
      ? this.open?.submissions[0]
      : this.submissions.find(({ settled }) => !settled);
    if (this.commits.waitingSince !== oldest?.since) this.violations.push('wrong oldest plant');
  }

  close(): void {
    void this.commits.close().then((hasEnded) => {
      this.isClosed = true;
      if (hasEnded && this.open) this.violations.push('closed without the last batch');
      if (this.submissions.some(({ settled }) => !settled)) {
        this.violations.push('closed before each plant was settled');
      }
    });
  }

  /** Whether the batch in progress has timed out. */
  get hasTimedOut(): boolean {
    return this.open !== undefined && performance.now() - this.open.since >= COMMIT_TIMEOUT_MS;
  }

  /** The batch in progress. There must not be two. */
  private get open(): Batch | undefined {
    return this.batches.find(({ endedAt }) => endedAt === Infinity);
  }

  private begin(submissions: readonly Submission[]): Promise<InsertOutcome[]> {
    const now = performance.now();
    if (submissions.length === 0) this.violations.push('an empty batch');
    if (this.isClosed) this.violations.push('a batch after the end');
    if (this.open) this.violations.push('two batches at once');
    const last = submissions.at(-1)?.weight ?? 0;
    const weight = submissions.reduce((sum, submission) => sum + submission.weight, 0);
    if (weight - last >= MAX_BATCH_WEIGHT) this.violations.push('too large a batch');
    const isFull = weight >= MAX_BATCH_WEIGHT;
    if (!isFull && this.commits.queueLength > 0) this.violations.push('a batch that is not full');

    const { promise, resolve, reject } = Promise.withResolvers<InsertOutcome[]>();
    const batch: Batch = {
      submissions,
      since: now,
      endedAt: Infinity,
      outcome: 'unknown',
      end: (result) => {
        batch.endedAt = performance.now();
        if (batch.endedAt - now < COMMIT_TIMEOUT_MS) batch.outcome = OUTCOMES[result];
        if (result === 'success') resolve(submissions.map(() => 'created'));
        else reject(result === 'rejection' ? new UnavailableError() : new Error('broken'));
      },
    };
    this.batches.push(batch);
    for (const submission of submissions) submission.batch = batch;
    return promise;
  }

  /** Closes the group commit and ends its batches. */
  async finish(): Promise<void> {
    this.close();
    for (let round = 0; round < 100 && !this.isClosed; round++) {
      await waitForTurn();
      await this.end('success');
    }
    await waitForTurn();
  }
}

function toOutcome(result: unknown): string {
  if (result === 'created') return 'stored';
  if (result instanceof UnavailableError) return 'rejected';
  return result instanceof OutcomeUnknownError ? 'unknown' : String(result);
}

/** Returns what is wrong with the outcome of a plant; undefined if it is right. */
function findViolation(
  { since, batch, settled }: Submission,
  blockedMs: number,
): string | undefined {
  if (!settled) return 'never settled';
  const waited = settled.at - since;
  if (waited > 2 * COMMIT_TIMEOUT_MS + blockedMs) return `settled after ${waited} ms`;
  if (settled.outcome !== (batch?.outcome ?? 'rejected'))
    return `${settled.outcome}, but not in the store`;
  if (batch || settled.wasTimedOut || waited > COMMIT_TIMEOUT_MS) return undefined;
  return `rejected after ${waited} ms`;
}

const weight = fc.constantFrom(1, 1, 256, 512, MAX_BATCH_WEIGHT, MAX_QUEUE_WEIGHT / 2);
const result = fc.constantFrom<Result>('success', 'success', 'rejection', 'failure');
const steps = fc.constantFrom(1, 4, 20, 39, 40, 41);
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ submit: weight }) },
  { weight: 3, arbitrary: fc.record({ end: result }) },
  { weight: 3, arbitrary: fc.record({ steps, isLoopBlocked: fc.boolean() }) },
  { weight: 4, arbitrary: fc.constant('turn' as const) },
  { weight: 1, arbitrary: fc.constant('close' as const) },
);

it('GroupCommit settles each plant once, in time, with the outcome of the store, on any schedule', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (schedule) => {
      const simulation = new Simulation();

      for (const each of schedule) {
        if (each === 'turn') await waitForTurn();
        else if (each === 'close') simulation.close();
        else if ('submit' in each) simulation.submit(each.submit);
        else if ('end' in each) await simulation.end(each.end);
        else await simulation.pass(each.steps * STEP_MS, each.isLoopBlocked);
      }
      await simulation.finish();

      expect(simulation.isClosed).toBe(true);
      expect(simulation.violations).toEqual([]);
      expect(
        simulation.submissions.map((submission) => findViolation(submission, simulation.blockedMs)),
      ).toEqual(simulation.submissions.map(() => undefined));
    }),
    { numRuns: 2000, verbose: true },
  );
});
