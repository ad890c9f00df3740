import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { OutcomeUnknownError, UnavailableError } from '../../../errors';
import { INT64_MAX, INT64_MIN } from '../../int64';
import type { Plant } from '../../plant';
import { type Insertion, PlantsRepository } from '../../plants.repository';
import { GroupCommit } from '../group-commit';
import { type KeyedPlant, plantBatches } from '../plant-batches';
import { openSqlite, RefusedError, SqliteThread } from './sqlite.thread';

/** Characters of text after which a page ends early, to bound its memory. */
const PAGE_TEXT_LIMIT = 2 ** 20;

/** Milliseconds between two probes of a store that is not ready. */
const PROBE_INTERVAL = 500;

/**
 * Stores plants in a SQLite file, with `node:sqlite` in a worker thread. Each batch is one
 * transaction, synced to the disk before it is acknowledged.
 *
 * After a failed batch or when the thread ends, the store is not ready until a later batch or a probe
 * succeeds. The log has each reason once, and the recovery.
 */
export class SqlitePlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly logger = new Logger('PlantStore');
  private readonly commits = new GroupCommit<KeyedPlant, Insertion>({
    ...plantBatches,
    commit: (batch) => this.commit(batch),
    timedOutLimit: 1,
  });
  private thread: SqliteThread;
  private restarting: Promise<SqliteThread> | undefined;
  private isWritable = true;
  /** The reasons logged since the store was last ready. */
  private readonly reported = new Set<string>();
  private isProbing = false;
  private readonly closing = new AbortController();

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
    return new SqlitePlantsRepository(resolve(path), await openSqlite(path));
  }

  async insert({ id, name, tag }: Plant): Promise<boolean> {
    return (await this.commits.submit({ id, name, tag })) === 'created';
  }

  override insertOnce({ id, name, tag }: Plant, key: string): Promise<Insertion> {
    return this.commits.submit({ id, name, tag, key });
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
    return this.isWritable && !this.commits.isStuck;
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
    this.closing.abort();
    await this.restarting?.catch(() => undefined);
    await this.thread.close();
  }

  private async commit(batch: readonly KeyedPlant[]): Promise<Insertion[]> {
    try {
      const thread = await this.liveThread();
      const insertions = await thread.commit(batch);
      this.markReady();
      return insertions;
    } catch (error) {
      const cause = this.fault(error);
      this.markUnready(cause);
      throw error instanceof RefusedError
        ? new UnavailableError({ cause })
        : new OutcomeUnknownError({ cause });
    }
  }

  private async read(from: bigint, to: bigint, limit: number): Promise<Plant[]> {
    try {
      const thread = await this.liveThread();
      return await thread.read({ from, to, limit, textLimit: PAGE_TEXT_LIMIT });
    } catch (error) {
      throw new UnavailableError({ cause: this.fault(error) });
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
      this.markUnready(this.fault(reason));
    });
    return thread;
  }

  private fault(error: unknown): Error {
    return new Error(`${this.path}: ${(error as Error).message}`, { cause: error });
  }

  private markReady(): void {
    this.isWritable = true;
    if (this.reported.size === 0) return;
    this.reported.clear();
    this.logger.log(`${this.path}: in use again.`);
  }

  /** Makes the store unready until a write succeeds. */
  private markUnready({ message }: Error): void {
    this.isWritable = false;
    if (this.closing.signal.aborted) return;
    if (!this.reported.has(message)) this.logger.error(`${message}.`);
    this.reported.add(message);
    if (!this.isProbing) void this.probeUntilReady();
  }

  private async probeUntilReady(): Promise<void> {
    const { signal } = this.closing;
    this.isProbing = true;
    while (!this.isWritable && !signal.aborted) {
      try {
        await setTimeout(PROBE_INTERVAL, undefined, { ref: false, signal });
        const thread = await this.liveThread();
        await thread.probe();
        this.markReady();
      } catch (error) {
        this.markUnready(this.fault(error));
      }
    }
    this.isProbing = false;
  }
}
