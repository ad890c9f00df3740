import { Worker } from 'node:worker_threads';
import type { Plant } from '../../plant';
import type { Insertion } from '../../plants.repository';
import type { KeyedPlant } from '../keyed-plant';
import type { PlantRange } from '../store-driver';
import type { SqliteReply, SqliteRequest, SqliteWorkerData } from './sqlite.messages';

/** Nothing of a request is stored, nor will be. */
export class RefusedError extends Error {}

/**
 * The worker thread that owns a SQLite connection, and replies in order. A request that fails is
 * rejected, with a {@link RefusedError} when nothing is stored. Otherwise the outcome is unknown, as
 * when the thread ends before it replies.
 */
export class SqliteThread {
  /** Resolves to the reason once the thread has ended. */
  readonly ended: Promise<Error>;
  private readonly pending: PromiseWithResolvers<never>[] = [];
  private endedBy: Error | undefined;
  private openedIdentity: string | undefined;

  private constructor(private readonly worker: Worker) {
    this.ended = new Promise((resolve) => {
      const end = (reason: Error): void => {
        this.endedBy ??= reason;
        for (const { reject } of this.pending.splice(0)) reject(this.endedBy);
        resolve(this.endedBy);
      };
      worker.on('error', end);
      worker.on('exit', (code) => {
        end(new Error(`the SQLite thread ended with code ${code}`));
      });
    });
    worker.on('message', (reply: SqliteReply) => {
      const request = this.pending.shift();
      if (reply.result === 'done') request?.resolve(reply.value as never);
      else if (reply.result === 'refused') request?.reject(new RefusedError(reply.reason));
      else request?.reject(new Error(reply.reason));
      // Pending requests keep the process alive. An idle store does not.
      if (this.pending.length === 0) worker.unref();
    });
  }

  /** @throws RefusedError when the thread cannot open the database */
  static async start(data: SqliteWorkerData): Promise<SqliteThread> {
    // Jest finds the built file: a thread runs no TypeScript.
    const file = require.resolve('./sqlite.worker.js');
    const worker = new Worker(file, { workerData: data, name: 'sqlite' });
    const thread = new SqliteThread(worker);
    try {
      thread.openedIdentity = await thread.nextReply();
      return thread;
    } catch (cause) {
      await thread.worker.terminate();
      throw new RefusedError((cause as Error).message, { cause });
    }
  }

  /** Of the store that the thread has opened. */
  get identity(): string | undefined {
    return this.openedIdentity;
  }

  get hasEnded(): boolean {
    return this.endedBy !== undefined;
  }

  /** Resolves once the plants are committed and synced. */
  commit(plants: readonly KeyedPlant[]): Promise<Insertion[]> {
    return this.request(plants);
  }

  read(range: PlantRange): Promise<Plant[]> {
    return this.request(range);
  }

  /** Rejects when the database cannot be written to. */
  probe(): Promise<void> {
    return this.request('probe');
  }

  async close(): Promise<void> {
    await this.request('close').catch(() => undefined);
  }

  private request<Value>(request: SqliteRequest): Promise<Value> {
    this.worker.ref();
    this.worker.postMessage(request);
    return this.nextReply();
  }

  private nextReply<Value>(): Promise<Value> {
    if (this.endedBy) return Promise.reject(new RefusedError(this.endedBy.message));
    const reply = Promise.withResolvers<never>();
    this.pending.push(reply);
    return reply.promise;
  }
}
