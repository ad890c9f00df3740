import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type {
  SqliteBatch,
  SqlitePlants,
  SqliteQuery,
  SqliteReply,
  SqliteRequest,
  SqliteWorkerData,
} from './sqlite.protocol';

/** Beside this file: TypeScript under the test runner, whose Node strips the types; built elsewhere. */
const WORKER = join(__dirname, `sqlite.worker.${__filename.endsWith('.ts') ? 'mts' : 'mjs'}`);

interface Waiting {
  readonly resolve: (reply: unknown) => void;
  readonly reject: (reason: Error) => void;
}

/** The worker thread that owns a SQLite connection, seen from outside. It answers in order. */
export class SqliteThread {
  /** Resolves to the reason once the thread is gone. */
  readonly ended: Promise<Error>;
  private readonly waiting: Waiting[] = [];
  private readonly whenEnded = Promise.withResolvers<Error>();
  private endedBy: Error | undefined;

  private constructor(private readonly worker: Worker) {
    this.ended = this.whenEnded.promise;
    worker.on('message', (reply: unknown) => {
      this.waiting.shift()?.resolve(reply);
      // Only what is under way keeps the process alive, not a store that nobody uses.
      if (this.waiting.length === 0) worker.unref();
    });
    worker.on('error', (error: Error) => {
      this.end(error);
    });
    worker.on('exit', (code) => {
      this.end(new Error(`the SQLite thread ended with code ${code}`));
    });
  }

  /**
   * Starts a thread and has it open the database.
   *
   * @throws Error with the reason when it cannot
   */
  static async start(data: SqliteWorkerData): Promise<SqliteThread> {
    const thread = new SqliteThread(new Worker(WORKER, { workerData: data, name: 'sqlite' }));
    const reply = await thread.nextReply<SqliteReply>();
    if (reply.result === 'committed') return thread;
    await thread.worker.terminate();
    throw new Error(reply.reason);
  }

  /** Whether the thread is gone; a new one may be started. */
  get hasEnded(): boolean {
    return this.endedBy !== undefined;
  }

  /**
   * Commits a batch.
   *
   * @throws Error when the thread ends before it has answered
   */
  commit(batch: SqliteBatch): Promise<SqliteReply> {
    this.post(batch);
    return this.nextReply();
  }

  /**
   * Reads plants.
   *
   * @throws Error when the thread ends before it has answered
   */
  read(query: SqliteQuery): Promise<SqlitePlants> {
    this.post(query);
    return this.nextReply();
  }

  /**
   * Finds out whether the database can be written to.
   *
   * @throws Error when the thread ends before it has answered
   */
  probe(): Promise<SqliteReply> {
    this.post('probe');
    return this.nextReply();
  }

  /** Has the thread close the database and end. */
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
      this.waiting.push({
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
    for (const { reject } of this.waiting.splice(0)) reject(this.endedBy);
  }
}
