import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
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

/** The folder of this file, or of the bundle that a host has made of it. */
const FOLDER = typeof __dirname === 'string' ? __dirname : dirname(process.argv[1] ?? '');

/** Where the package has the worker's file. */
const WORKER_IN_PACKAGE = 'dist/plants/persistence/sqlite/sqlite.worker.js';

/**
 * Finds the worker's file: beside this one, or in the package. A host that is bundled needs the latter,
 * and so do the tests: they run this file from `src`, where the package's name leads to this
 * repository, and the thread runs what was built into `dist`.
 *
 * A host of ES modules calls its copy `.cjs`.
 *
 * @throws Error saying what to copy
 */
function findWorker(): string {
  const beside = ['js', 'cjs'].map((suffix) => join(FOLDER, `sqlite.worker.${suffix}`));
  const found = beside.find((file) => existsSync(file));
  if (found) return found;
  try {
    const manifest = createRequire(join(FOLDER, 'bundle.js')).resolve('plant-store/package.json');
    return join(dirname(manifest), WORKER_IN_PACKAGE);
  } catch (cause) {
    throw new Error(
      `the file of its thread is missing: copy node_modules/plant-store/${WORKER_IN_PACKAGE} to ${FOLDER}`,
      { cause },
    );
  }
}

interface PendingRequest {
  readonly resolve: (reply: never) => void;
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
      this.pending.shift()?.resolve(reply as never);
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
    const thread = new SqliteThread(new Worker(findWorker(), { workerData: data, name: 'sqlite' }));
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
    return this.request(batch);
  }

  /**
   * Reads plants.
   *
   * @throws Error when the thread ends before it replies
   */
  read(query: SqliteQuery): Promise<SqlitePlants> {
    return this.request(query);
  }

  /**
   * Checks whether the database can be written to.
   *
   * @throws Error when the thread ends before it replies
   */
  probe(): Promise<SqliteStatusReply> {
    return this.request('probe');
  }

  /** Closes the database and ends the thread. */
  async close(): Promise<void> {
    if (this.hasEnded) return;
    this.worker.ref();
    this.worker.postMessage('close' satisfies SqliteRequest);
    await once(this.worker, 'exit');
  }

  private request<Reply>(request: SqliteRequest): Promise<Reply> {
    this.worker.ref();
    this.worker.postMessage(request);
    return this.nextReply();
  }

  private nextReply<Reply>(): Promise<Reply> {
    if (this.endedBy) return Promise.reject(this.endedBy);
    return new Promise<Reply>((resolve, reject) => {
      this.pending.push({ resolve, reject });
    });
  }

  private end(reason: Error): void {
    this.endedBy ??= reason;
    this.whenEnded.resolve(this.endedBy);
    for (const { reject } of this.pending.splice(0)) reject(this.endedBy);
  }
}
