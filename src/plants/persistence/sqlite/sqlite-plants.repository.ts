import { resolve } from 'node:path';
import { OutcomeUnknownError, UnavailableError } from '../../errors/errors';
import { INT64_MAX, INT64_MIN } from '../../int64';
import type { Plant } from '../../plant';
import type { Insertion } from '../../plants.repository';
import { CircuitBreaker, PROBE_INTERVAL } from '../circuit-breaker';
import { CommittingPlantsRepository } from '../committing-plants.repository';
import type { KeyedPlant } from '../plant-batches';
import { StoreOpenError } from '../store-open.error';
import { describeUnusablePath } from './sqlite.settings';
import { RefusedError, SqliteThread } from './sqlite.thread';

/**
 * Stores plants in a SQLite file, with `node:sqlite` in a worker thread. Each batch is one
 * transaction, synced to the disk before it is acknowledged.
 * After a failed batch or when the thread ends, the store is not ready until a probe succeeds.
 */
export class SqlitePlantsRepository extends CommittingPlantsRepository {
  private thread: SqliteThread;
  protected readonly breaker = new CircuitBreaker(
    (signal) => this.recover(signal),
    () => this.path,
  );

  private constructor(
    private readonly path: string,
    thread: SqliteThread,
  ) {
    super();
    this.thread = this.watch(thread);
  }

  /**
   * @param path of the file, relative to the working directory; created when it is missing
   * @throws StoreOpenError when the file cannot be used
   */
  static async open(path: string): Promise<SqlitePlantsRepository> {
    const fault = describeUnusablePath(path);
    // Without the path, which may be a URL with a password.
    if (fault) throw new StoreOpenError('sqlite', fault);
    const file = resolve(path);
    try {
      const thread = await SqliteThread.start({ path: file, identity: undefined });
      return new SqlitePlantsRepository(file, thread);
    } catch (cause) {
      const { message } = cause as Error;
      const clause = `names the file ${file}, which cannot be used: ${message}`;
      throw new StoreOpenError('sqlite', clause, { cause });
    }
  }

  async find(id: bigint): Promise<Plant | undefined> {
    const [plant] = await this.read(id, id, 1);
    return plant;
  }

  async page(after: bigint | undefined, limit: number): Promise<readonly Plant[]> {
    if (after === INT64_MAX) return [];
    return this.read(after === undefined ? INT64_MIN : after + 1n, INT64_MAX, limit);
  }

  protected commit(batch: readonly KeyedPlant[]): Promise<Insertion[]> {
    return this.write(this.thread.commit(batch));
  }

  protected probe(): Promise<void> {
    return this.write(this.thread.probe());
  }

  protected close(): Promise<void> {
    return this.thread.close();
  }

  private async write<Result>(reply: Promise<Result>): Promise<Result> {
    try {
      return await reply;
    } catch (error) {
      const cause = this.fault(error);
      this.breaker.open(cause, true, PROBE_INTERVAL);
      throw new (error instanceof RefusedError ? UnavailableError : OutcomeUnknownError)({ cause });
    }
  }

  private async read(from: bigint, to: bigint, limit: number): Promise<Plant[]> {
    try {
      return await this.thread.read({ from, to, limit });
    } catch (error) {
      throw new UnavailableError({ cause: this.fault(error) });
    }
  }

  /** @throws Error saying why the store is not usable */
  private async recover(signal: AbortSignal): Promise<void> {
    try {
      if (this.thread.hasEnded) {
        const { identity } = this.thread;
        const thread = await SqliteThread.start({ path: this.path, identity });
        this.thread = this.watch(thread);
        // The repository has closed meanwhile.
        if (signal.aborted) await thread.close();
      }
      await this.thread.probe();
    } catch (error) {
      throw this.fault(error);
    }
  }

  private watch(thread: SqliteThread): SqliteThread {
    void thread.ended.then((reason) => {
      this.breaker.open(this.fault(reason), true, PROBE_INTERVAL);
    });
    return thread;
  }

  private fault(error: unknown): Error {
    return new Error(`${this.path}: ${(error as Error).message}.`, { cause: error });
  }
}
