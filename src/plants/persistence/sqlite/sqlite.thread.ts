import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type {
  SqliteBatch,
  SqliteCommitReply,
  SqlitePlants,
  SqliteQuery,
  SqliteRequest,
  SqliteStartReply,
  SqliteStatusReply,
  SqliteWorkerData,
} from './sqlite.protocol';

/** The worker's file, beside this one: TypeScript in tests, where Node strips the types. */
const WORKER = join(__dirname, `sqlite.worker.${__filename.endsWith('.ts') ? 'mts' : 'mjs'}`);

interface PendingRequest {
  readonly resolve: (reply: unknown) => void;
  readonly reject: (reason: Error) => void;
}

/** A handle on the worker thread that owns a SQLite connection. The worker replies in order. */
export class SqliteThread {
  /** Resolves to the reason once the thread has ended. */
  readonly ended: Promise<Error>;
  private readonly pending: PendingRequest[] = [];
  private readonly whenEnded = Promise.withResolvers<Error>();
  private endedBy: Error | undefined;
  private storeIdentity = '';

  private constructor(private readonly worker: Worker) {
    this.ended = this.whenEnded.promise;
    worker.on('message', (reply: unknown) => {
      this.pending.shift()?.resolve(reply);
      // Pending requests keep the process alive. An idle store does not.
      if (this.pending.length === 0) worker.unref();
    });
    worker.on('error', (error: Error) => {
      this.end(error);
    });
    worker.on('exit', (code) => {
      this.end(new Error(`the SQLite thread ended with code ${code}`));
    });
  }

  /**
   * Starts a thread, which opens the database.
   *
   * @throws Error with the reason when that fails
   */
  static async start(data: SqliteWorkerData): Promise<SqliteThread> {
    const thread = new SqliteThread(new Worker(WORKER, { workerData: data, name: 'sqlite' }));
    const reply = await thread.nextReply<SqliteStartReply>();
    if (reply.result === 'ok') {
      thread.storeIdentity = reply.identity;
      return thread;
    }
    await thread.worker.terminate();
    throw new Error(reply.reason);
  }

  /** The identity of the store that the thread has opened. */
  get identity(): string {
    return this.storeIdentity;
  }

  /** Whether the thread has ended, so that a new one may be started. */
  get hasEnded(): boolean {
    return this.endedBy !== undefined;
  }

  /**
   * Commits a batch.
   *
   * @throws Error when the thread ends before it replies
   */
  commit(batch: SqliteBatch): Promise<SqliteCommitReply> {
    this.post(batch);
    return this.nextReply();
  }

  /**
   * Reads plants.
   *
   * @throws Error when the thread ends before it replies
   */
  read(query: SqliteQuery): Promise<SqlitePlants> {
    this.post(query);
    return this.nextReply();
  }

  /**
   * Checks whether the database can be written to.
   *
   * @throws Error when the thread ends before it replies
   */
  probe(): Promise<SqliteStatusReply> {
    this.post('probe');
    return this.nextReply();
  }

  /** Closes the database and ends the thread. */
  async close(): Promise<void> {
    if (this.hasEnded) return;
    this.post('close');
    await once(this.worker, 'exit');
  }

  private post(request: SqliteRequest): void {
    this.worker.ref();
    this.worker.postMessage(request);
  }

  private nextReply<Reply>(): Promise<Reply> {
    if (this.endedBy) return Promise.reject(this.endedBy);
    return new Promise((resolve, reject) => {
      this.pending.push({
        resolve: (reply) => {
          resolve(reply as Reply);
        },
        reject,
      });
    });
  }

  private end(reason: Error): void {
    this.endedBy ??= reason;
    this.whenEnded.resolve(this.endedBy);
    for (const { reject } of this.pending.splice(0)) reject(this.endedBy);
  }
}
