import { resolve } from 'node:path';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { OutcomeUnknownError, UnavailableError } from '../../errors/errors';
import { INT64_MAX, INT64_MIN } from '../../int64';
import type { Plant } from '../../plant';
import { type Insertion, PlantsRepository } from '../../plants.repository';
import { CircuitBreaker, PROBE_INTERVAL } from '../circuit-breaker';
import { GroupCommit } from '../group-commit';
import { type KeyedPlant, plantBatches } from '../plant-batches';
import { openSqlite, RefusedError, SqliteThread } from './sqlite.thread';

/**
 * Stores plants in a SQLite file, with `node:sqlite` in a worker thread. Each batch is one
 * transaction, synced to the disk before it is acknowledged.
 * After a failed batch or when the thread ends, the store is not ready until a probe succeeds.
 */
export class SqlitePlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly commits = new GroupCommit<KeyedPlant, Insertion>({
    ...plantBatches,
    commit: (batch) => this.write((thread) => thread.commit(batch)),
    probe: () => this.write((thread) => thread.probe()),
  });
  private thread: SqliteThread;
  private restarting: Promise<SqliteThread> | undefined;
  private readonly breaker = new CircuitBreaker(
    () => this.request((thread) => thread.probe()),
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
    const thread = await openSqlite(path, (line) => {
      new Logger('PlantStore').log(line);
    });
    return new SqlitePlantsRepository(resolve(path), thread);
  }

  insert({ id, name, tag }: Plant, keyDigest?: string): Promise<Insertion> {
    return this.commits.submit({ id, name, tag, keyDigest });
  }

  async find(id: bigint): Promise<Plant | undefined> {
    const [plant] = await this.read(id, id, 1);
    return plant;
  }

  async page(after: bigint | undefined, limit: number): Promise<readonly Plant[]> {
    if (after === INT64_MAX) return [];
    return this.read(after === undefined ? INT64_MIN : after + 1n, INT64_MAX, limit);
  }

  override isReady(): boolean {
    return this.breaker.fault === undefined && !this.commits.isLate;
  }

  override queueLength(): number {
    return this.commits.queueLength;
  }

  override isFull(): boolean {
    return this.commits.isFull;
  }

  /** Commits the plants accepted so far, then closes the file. Nest calls it once HTTP has stopped. */
  async onApplicationShutdown(): Promise<void> {
    await this.commits.close();
    this.breaker.stop();
    await this.restarting?.catch(() => undefined);
    await this.thread.close();
  }

  private async write<Result>(send: (thread: SqliteThread) => Promise<Result>): Promise<Result> {
    try {
      return await this.request(send);
    } catch (error) {
      const cause = error as Error;
      this.breaker.open(cause, true, PROBE_INTERVAL);
      const isRefused = cause.cause instanceof RefusedError;
      throw new (isRefused ? UnavailableError : OutcomeUnknownError)({ cause });
    }
  }

  private async read(from: bigint, to: bigint, limit: number): Promise<Plant[]> {
    try {
      return await this.request((thread) => thread.read({ from, to, limit }));
    } catch (cause) {
      throw new UnavailableError({ cause });
    }
  }

  /** @throws Error for the operator, caused by a RefusedError when nothing is stored */
  private async request<Result>(send: (thread: SqliteThread) => Promise<Result>): Promise<Result> {
    try {
      return await send(await this.liveThread());
    } catch (error) {
      throw this.fault(error);
    }
  }

  /** @throws RefusedError when the thread has ended and no other can be started */
  private async liveThread(): Promise<SqliteThread> {
    if (!this.thread.hasEnded) return this.thread;
    this.restarting ??= SqliteThread.start({ path: this.path, identity: this.thread.identity })
      .then((thread) => (this.thread = this.watch(thread)))
      .finally(() => {
        this.restarting = undefined;
      });
    return this.restarting;
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
