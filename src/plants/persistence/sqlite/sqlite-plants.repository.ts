import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { OnApplicationShutdown } from '@nestjs/common';
import { OutcomeUnknownError, UnavailableError } from '../../../errors';
import { INT64_MAX, INT64_MIN } from '../../int64';
import type { Plant } from '../../plant';
import { PlantsRepository } from '../../plants.repository';
import { GroupCommit } from '../group-commit';
import { plantBatches } from '../plant-batches';
import { sqliteMigrations } from './sqlite.migrations';
import type { SqliteReply } from './sqlite.protocol';
import { SqliteThread } from './sqlite.thread';
import { StoreOpenError } from '../store-open.error';

/** Characters of text after which a page ends early, so that memory stays flat. */
const PAGE_TEXT_LIMIT = 2 ** 20;

/** Milliseconds: a lock held longer by another process refuses the batch. */
const BUSY_TIMEOUT = 1000;

/** Milliseconds between looks at whether a store that failed is good again. */
const PROBE_INTERVAL = 500;

/**
 * Keeps plants in a SQLite file, with `node:sqlite` in a thread of its own. Each batch is one
 * transaction, synced to the disk before it counts.
 *
 * After a batch that failed, or when the thread ends, the store is not ready until it has taken a
 * write again: that of a later batch, or of a probe, so that it recovers without traffic as well.
 */
export class SqlitePlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly commits = new GroupCommit<Plant, boolean>({
    ...plantBatches,
    commit: (batch) => this.commit(batch),
    lateLimit: 1,
  });
  private thread: SqliteThread;
  private restarting: Promise<SqliteThread> | undefined;
  private ready = true;
  private probing: Promise<void> | undefined;
  private readonly closing = new AbortController();

  private constructor(
    private readonly path: string,
    thread: SqliteThread,
  ) {
    super();
    this.thread = this.watch(thread);
  }

  /**
   * Opens the database file, creating it and its directory when missing.
   *
   * @param path of the file, relative to the working directory
   * @throws StoreOpenError when the file cannot be used
   */
  static async open(path: string): Promise<SqlitePlantsRepository> {
    const absolute = resolve(path);
    try {
      return new SqlitePlantsRepository(absolute, await startThread(absolute, true));
    } catch (cause) {
      throw new StoreOpenError(`The database file ${absolute} cannot be used`, cause);
    }
  }

  insert(plant: Plant): Promise<boolean> {
    return this.commits.submit(plant);
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
    return this.ready && !this.commits.isStuck;
  }

  override queueLength(): number {
    return this.commits.queueLength;
  }

  override isFull(): boolean {
    return this.commits.isFull;
  }

  /** Nest calls this once HTTP has stopped: what was accepted is committed, then the file closed. */
  async onApplicationShutdown(): Promise<void> {
    await this.commits.close();
    this.closing.abort();
    await this.restarting?.catch(() => undefined);
    await this.thread.close();
  }

  private async commit(batch: readonly Plant[]): Promise<boolean[]> {
    try {
      const thread = await this.liveThread();
      const reply = await thread.commit({
        ids: BigInt64Array.from(batch, ({ id }) => id),
        names: batch.map(({ name }) => name),
        tags: batch.map(({ tag }) => tag),
      });
      const kept = this.keptOf(reply);
      this.ready = true;
      return Array.from(kept, (plant) => plant === 1);
    } catch (error) {
      this.doubt();
      throw error;
    }
  }

  private keptOf(reply: SqliteReply): Uint8Array {
    switch (reply.result) {
      case 'committed':
        return reply.kept;
      case 'refused':
        throw new UnavailableError({ cause: new Error(`${this.path}: ${reply.reason}`) });
      case 'unknown':
        throw new OutcomeUnknownError({ cause: new Error(`${this.path}: ${reply.reason}`) });
    }
  }

  private async read(from: bigint, to: bigint, limit: number): Promise<readonly Plant[]> {
    const thread = await this.liveThread();
    const plants = await thread
      .read({ from, to, limit, textLimit: PAGE_TEXT_LIMIT })
      .catch((error: unknown) => ({ reason: String(error) }));
    if (!('reason' in plants)) return plants;
    throw new UnavailableError({ cause: new Error(`${this.path}: ${plants.reason}`) });
  }

  /** @throws UnavailableError when the thread has ended and no other can be started */
  private async liveThread(): Promise<SqliteThread> {
    if (!this.thread.hasEnded) return this.thread;
    this.restarting ??= this.restart().finally(() => {
      this.restarting = undefined;
    });
    try {
      return await this.restarting;
    } catch (cause) {
      throw new UnavailableError({ cause });
    }
  }

  private async restart(): Promise<SqliteThread> {
    this.thread = this.watch(await startThread(this.path, false));
    return this.thread;
  }

  private watch(thread: SqliteThread): SqliteThread {
    void thread.ended.then(() => {
      this.doubt();
    });
    return thread;
  }

  /** Holds the store for not ready until it has taken a write again. */
  private doubt(): void {
    this.ready = false;
    this.probing ??= this.probeUntilReady().finally(() => {
      this.probing = undefined;
      if (!this.isClosedOrReady) this.doubt();
    });
  }

  private async probeUntilReady(): Promise<void> {
    const { signal } = this.closing;
    while (!this.isClosedOrReady) {
      try {
        await setTimeout(PROBE_INTERVAL, undefined, { ref: false, signal });
        const { result } = await (await this.liveThread()).probe();
        this.ready ||= result === 'committed';
      } catch {
        // Not ready is all there is to say; a refused plant carries the reason.
      }
    }
  }

  private get isClosedOrReady(): boolean {
    return this.ready || this.closing.signal.aborted;
  }
}

function startThread(path: string, create: boolean): Promise<SqliteThread> {
  return SqliteThread.start({
    path,
    create,
    busyTimeout: BUSY_TIMEOUT,
    migrations: sqliteMigrations,
  });
}
