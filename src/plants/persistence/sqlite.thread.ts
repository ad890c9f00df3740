import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { SqliteBatch, SqliteReply, SqliteRequest, SqliteWorkerData } from './sqlite.protocol';

/** Beside this file: TypeScript under the test runner, whose Node strips the types; built elsewhere. */
const WORKER = join(__dirname, `sqlite.worker.${__filename.endsWith('.ts') ? 'mts' : 'mjs'}`);

/** The worker thread that owns a SQLite connection, seen from outside. It answers in order. */
export class SqliteThread {
  /** Resolves to the reason once the thread is gone. */
  readonly ended: Promise<Error>;
  private readonly waiting: PromiseWithResolvers<SqliteReply>[] = [];
  private readonly whenEnded = Promise.withResolvers<Error>();
  private endedBy: Error | undefined;

  private constructor(private readonly worker: Worker) {
    this.ended = this.whenEnded.promise;
    worker.on('message', (reply: SqliteReply) => this.waiting.shift()?.resolve(reply));
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
    this.worker.postMessage(request);
  }

  private nextReply(): Promise<SqliteReply> {
    if (this.endedBy) return Promise.reject(this.endedBy);
    const reply = Promise.withResolvers<SqliteReply>();
    this.waiting.push(reply);
    return reply.promise;
  }

  private end(reason: Error): void {
    this.endedBy ??= reason;
    this.whenEnded.resolve(this.endedBy);
    for (const reply of this.waiting.splice(0)) reply.reject(this.endedBy);
  }
}
