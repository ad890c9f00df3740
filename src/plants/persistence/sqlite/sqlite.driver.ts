import { resolve } from 'node:path';
import { OutcomeUnknownError, UnavailableError } from '../../errors/errors';
import type { Plant } from '../../plant';
import type { InsertOutcome } from '../../plants.repository';
import type { KeyedPlant } from '../keyed-plant';
import type { PlantRange, StoreDriver } from '../store-driver';
import { REOPEN_INTERVAL_MS, type StoreHealth } from '../store-health';
import { StoreOpenError } from '../store-open.error';
import { findPathError } from './sqlite.settings';
import { NotStoredError, type SqliteRequest, SqliteThread } from './sqlite.thread';

/**
 * A SQLite file, opened by `node:sqlite` in a worker thread. Each batch is one transaction, synced to the
 * disk before it is acknowledged. A failed batch and a terminated thread both count as store failures.
 * If the file was moved, replaced, deleted or truncated, `open` fails until the process is restarted.
 */
export class SqliteDriver implements StoreDriver {
  /** The absolute path of the file. */
  readonly name: string;
  /** Undefined until the store has been opened once. */
  private thread: SqliteThread | undefined;

  /**
   * @param path the file, relative to the working directory; created if it is missing
   * @throws StoreOpenError when the path cannot be used for a store
   */
  constructor(
    path: string,
    private readonly health: StoreHealth,
  ) {
    const error = findPathError(path);
    // The message omits the path, because it may be a URL with a password.
    if (error) throw new StoreOpenError('sqlite', error);
    this.name = resolve(path);
  }

  async open(signal: AbortSignal): Promise<void> {
    const { thread } = this;
    try {
      if (thread && !thread.endedBy) {
        await thread.request('probe');
        return;
      }
      const data = { path: this.name, databaseId: thread?.databaseId };
      this.thread = await SqliteThread.start(data, (reason) => this.fail(reason));
    } catch (error) {
      if (thread) throw this.toError(error);
      const message = `names the file ${this.name}, which cannot be used: ${(error as Error).message}`;
      throw new StoreOpenError('sqlite', message, { cause: error });
    }
    // The repository was closed while the thread was starting.
    if (signal.aborted) await this.close();
  }

  commit(batch: readonly KeyedPlant[]): Promise<InsertOutcome[]> {
    return this.request(batch);
  }

  read(range: PlantRange): Promise<Plant[]> {
    return this.request(range, UnavailableError);
  }

  probe(): Promise<void> {
    return this.request('probe');
  }

  async close(): Promise<void> {
    await this.thread?.request('close').catch(() => undefined);
  }

  /** @param LostReplyError what to throw when plants may be stored, or the thread ends before it replies */
  private async request<Value>(
    request: SqliteRequest,
    LostReplyError: typeof UnavailableError | typeof OutcomeUnknownError = OutcomeUnknownError,
  ): Promise<Value> {
    try {
      if (!this.thread) throw new NotStoredError('the store is not open');
      return await this.thread.request(request);
    } catch (error) {
      const cause = this.fail(error);
      throw new (error instanceof NotStoredError ? UnavailableError : LostReplyError)({ cause });
    }
  }

  private fail(reason: unknown): Error {
    const error = this.toError(reason);
    // Wait before reopening: on a full disk, reopening may succeed although larger writes keep failing.
    this.health.fail(error, { delay: REOPEN_INTERVAL_MS });
    return error;
  }

  private toError(error: unknown): Error {
    return new Error(`${this.name}: ${(error as Error).message}.`, { cause: error });
  }
}
