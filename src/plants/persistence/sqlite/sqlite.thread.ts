import { Worker } from 'node:worker_threads';
import type { KeyedPlant } from '../keyed-plant';
import type { PlantRange } from '../store-driver';

/** The database file: its absolute path and its id, which is undefined at startup, when it may be missing. */
export interface SqliteWorkerData {
  readonly path: string;
  readonly databaseId: string | undefined;
}

/** Plants are inserted in one transaction. A probe writes to the database but changes nothing. */
export type SqliteRequest = readonly KeyedPlant[] | PlantRange | 'probe' | 'close';

/** The worker also sends one as its first message, with the id of the file that it has opened. */
export type SqliteReply =
  { readonly value: unknown } | { readonly error: string; readonly mayBeStored: boolean };

/** The request stored nothing and will store nothing. */
export class NotStoredError extends Error {}

/** The worker thread that owns a SQLite connection, and replies in order. */
export class SqliteThread {
  /** The id of the database file that the thread has opened. */
  databaseId: string | undefined;
  /** Why the thread has ended; undefined while it runs. */
  endedBy: Error | undefined;
  private readonly pending: PromiseWithResolvers<never>[] = [];

  private constructor(
    private readonly worker: Worker,
    onEnd: (reason: Error) => unknown,
  ) {
    const end = (reason: Error): void => {
      if (this.endedBy) return;
      this.endedBy = reason;
      for (const { reject } of this.pending.splice(0)) reject(reason);
      if (this.databaseId !== undefined) onEnd(reason);
    };
    worker.on('error', end);
    worker.on('exit', (code) => {
      end(new Error(`the SQLite thread exited with code ${code}`));
    });
    worker.on('message', (reply: SqliteReply) => {
      const request = this.pending.shift();
      if ('value' in reply) request?.resolve(reply.value as never);
      else request?.reject(new (reply.mayBeStored ? Error : NotStoredError)(reply.error));
      // Pending requests keep the process alive. An idle store does not.
      if (this.pending.length === 0) worker.unref();
    });
  }

  /**
   * @param onEnd called with the reason if the thread ends after it has opened the database
   * @throws Error when the thread cannot open the database
   */
  static async start(
    workerData: SqliteWorkerData,
    onEnd: (reason: Error) => unknown,
  ): Promise<SqliteThread> {
    // In Jest this resolves to the built file, because worker threads cannot run TypeScript.
    const file = require.resolve('./sqlite.worker.js');
    const thread = new SqliteThread(new Worker(file, { workerData, name: 'sqlite' }), onEnd);
    thread.databaseId = await thread.nextReply();
    return thread;
  }

  /**
   * Resolves to the outcomes of a batch that is synced, to the plants of a range, or to undefined.
   *
   * @throws NotStoredError when nothing is stored
   * @throws Error when plants may be stored, as when the thread ends before it replies
   */
  request<Value>(request: SqliteRequest): Promise<Value> {
    this.worker.ref();
    this.worker.postMessage(request);
    return this.nextReply();
  }

  private nextReply<Value>(): Promise<Value> {
    if (this.endedBy) return Promise.reject(new NotStoredError(this.endedBy.message));
    const reply = Promise.withResolvers<never>();
    this.pending.push(reply);
    return reply.promise;
  }
}
