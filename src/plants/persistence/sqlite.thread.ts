import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { SqliteBatch, SqliteReply, SqliteRequest, SqliteWorkerData } from './sqlite.protocol';

/** Beside this file: TypeScript under the test runner, whose Node strips the types; built elsewhere. */
const WORKER = join(__dirname, `sqlite.worker.${__filename.endsWith('.ts') ? 'mts' : 'mjs'}`);

/** The worker thread that owns a SQLite connection, seen from outside. It takes one batch at a time. */
export class SqliteThread {
  private waiting: PromiseWithResolvers<SqliteReply> | undefined;
  private endedBy: Error | undefined;

  private constructor(private readonly worker: Worker) {
    worker.on('message', (reply: SqliteReply) => this.waiting?.resolve(reply));
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
    const reply = await thread.nextReply();
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

  /** Has the thread close the database and end. */
  async close(): Promise<void> {
    if (this.hasEnded) return;
    this.post('close');
    await once(this.worker, 'exit');
  }

  private post(request: SqliteRequest): void {
    this.worker.postMessage(request);
  }

  private nextReply(): Promise<SqliteReply> {
    if (this.endedBy) return Promise.reject(this.endedBy);
    this.waiting = Promise.withResolvers();
    return this.waiting.promise;
  }

  private end(reason: Error): void {
    this.endedBy ??= reason;
    this.waiting?.reject(this.endedBy);
  }
}
