import { resolve } from 'node:path';
import { OutcomeUnknownError, UnavailableError } from '../../errors/errors';
import type { Plant } from '../../plant';
import type { Insertion } from '../../plants.repository';
import type { KeyedPlant } from '../keyed-plant';
import type { PlantRange, StoreDriver } from '../store-driver';
import { ATTEMPT_INTERVAL, type StoreHealth } from '../store-health';
import { StoreOpenError } from '../store-open.error';
import { describeUnusablePath } from './sqlite.settings';
import { RefusedError, SqliteThread } from './sqlite.thread';

/**
 * A SQLite file, opened by `node:sqlite` in a worker thread. Each batch is one transaction, synced to the
 * disk before it is acknowledged. A failed batch is a fault, and the end of the thread is one.
 */
export class SqliteDriver implements StoreDriver {
  /** The file, absolute. */
  readonly name: string;
  /** Undefined until the store was open for the first time. */
  private thread: SqliteThread | undefined;

  /**
   * @param path of the file, relative to the working directory; created when it is missing
   * @throws StoreOpenError when it cannot be the path of a store
   */
  constructor(
    path: string,
    private readonly health: StoreHealth,
  ) {
    const fault = describeUnusablePath(path);
    // Without the path, which may be a URL with a password.
    if (fault) throw new StoreOpenError('sqlite', fault);
    this.name = resolve(path);
  }

  async open(signal: AbortSignal): Promise<void> {
    const { thread } = this;
    try {
      if (thread && !thread.hasEnded) {
        await thread.probe();
        return;
      }
      this.thread = await SqliteThread.start({ path: this.name, identity: thread?.identity });
    } catch (error) {
      if (thread) throw this.fault(error);
      const clause = `names the file ${this.name}, which cannot be used: ${(error as Error).message}`;
      throw new StoreOpenError('sqlite', clause, { cause: error });
    }
    void this.thread.ended.then((reason) => {
      this.fail(this.fault(reason));
    });
    // The repository has closed meanwhile.
    if (signal.aborted) await this.thread.close();
  }

  commit(batch: readonly KeyedPlant[]): Promise<Insertion[]> {
    return this.write((thread) => thread.commit(batch));
  }

  async read(range: PlantRange): Promise<Plant[]> {
    try {
      return await this.opened.read(range);
    } catch (error) {
      throw new UnavailableError({ cause: this.fault(error) });
    }
  }

  probe(): Promise<void> {
    return this.write((thread) => thread.probe());
  }

  async close(): Promise<void> {
    await this.thread?.close();
  }

  private get opened(): SqliteThread {
    if (!this.thread) throw new RefusedError('it was not opened');
    return this.thread;
  }

  private async write<Result>(request: (thread: SqliteThread) => Promise<Result>): Promise<Result> {
    try {
      return await request(this.opened);
    } catch (error) {
      const cause = this.fault(error);
      this.fail(cause);
      throw new (error instanceof RefusedError ? UnavailableError : OutcomeUnknownError)({ cause });
    }
  }

  private fail(fault: Error): void {
    // Not at once: on a full disk an attempt may succeed while larger writes fail again and again.
    this.health.fail(fault, { delay: ATTEMPT_INTERVAL });
  }

  private fault(error: unknown): Error {
    return new Error(`${this.name}: ${(error as Error).message}.`, { cause: error });
  }
}
