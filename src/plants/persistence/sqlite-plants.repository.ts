import { resolve } from 'node:path';
import type { OnApplicationShutdown } from '@nestjs/common';
import { OutcomeUnknownError, UnavailableError } from '../../errors';
import { INT64_MAX, INT64_MIN } from '../int64';
import type { Plant } from '../plant';
import { PlantsRepository } from '../plants.repository';
import { GroupCommit } from './group-commit';
import { sqliteMigrations } from './sqlite.migrations';
import { SqliteThread } from './sqlite.thread';
import { StoreOpenError } from './store-open.error';

/** A plant weighs 1 for each 4 KiB of text begun. */
const WEIGHT_UNIT = 4096;

/** Characters of text after which a page ends early, so that memory stays flat. */
const PAGE_TEXT_LIMIT = 2 ** 20;

/** Milliseconds: a lock held longer by another process refuses the batch. */
const BUSY_TIMEOUT = 1000;

/**
 * Keeps plants in a SQLite file, with `node:sqlite` in a thread of its own. Each batch is one
 * transaction, synced to the disk before it counts.
 */
export class SqlitePlantsRepository extends PlantsRepository implements OnApplicationShutdown {
  private readonly commits = new GroupCommit<Plant, number>({
    commit: (batch) => this.commit(batch),
    weigh: ({ name, tag = '' }) => 1 + Math.floor((name.length + tag.length) / WEIGHT_UNIT),
    batchWeight: 1024,
    queueWeight: 16_384,
    concurrency: 1,
    deadline: 10_000,
  });

  private constructor(
    private readonly path: string,
    private thread: SqliteThread,
  ) {
    super();
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

  async insert(plant: Plant): Promise<boolean> {
    return (await this.commits.submit(plant)) === 1;
  }

  async find(id: bigint): Promise<Plant | undefined> {
    const [plant] = await this.read(id, id, 1);
    return plant;
  }

  async page(after: bigint | undefined, limit: number): Promise<readonly Plant[]> {
    if (after === INT64_MAX) return [];
    return this.read(after === undefined ? INT64_MIN : after + 1n, INT64_MAX, limit);
  }

  /** Nest calls this once HTTP has stopped: what was accepted is committed, then the file closed. */
  async onApplicationShutdown(): Promise<void> {
    await this.commits.close();
    await this.thread.close();
  }

  private async commit(batch: readonly Plant[]): Promise<Uint8Array> {
    const thread = await this.liveThread();
    const reply = await thread.commit({
      ids: BigInt64Array.from(batch, ({ id }) => id),
      names: batch.map(({ name }) => name),
      tags: batch.map(({ tag }) => tag),
    });
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

  private async liveThread(): Promise<SqliteThread> {
    if (!this.thread.hasEnded) return this.thread;
    try {
      this.thread = await startThread(this.path, false);
      return this.thread;
    } catch (cause) {
      throw new UnavailableError({ cause });
    }
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
