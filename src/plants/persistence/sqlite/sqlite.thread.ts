import { existsSync, statSync } from 'node:fs';
import { dirname, resolve as resolvePath } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Plant } from '../../plant';
import type { Insertion } from '../../plants.repository';
import type { KeyedPlant } from '../plant-batches';

export interface SqliteWorkerData {
  /** The database file, absolute. */
  readonly path: string;
  /** Of the store in use. At the start undefined: a missing store is created. */
  readonly identity: string | undefined;
}

export interface SqliteQuery {
  /** Both inclusive. The reply is in id order. */
  readonly from: bigint;
  readonly to: bigint;
  readonly limit: number;
}

/** Plants are inserted in one transaction. A probe writes to the database, and changes nothing. */
export type SqliteRequest = readonly KeyedPlant[] | SqliteQuery | 'probe' | 'close';

/** The worker's first message is one too, with the identity of the store that it has opened. */
export type SqliteReply =
  | { readonly result: 'done'; readonly value: unknown }
  /** `refused`: nothing is stored or will be. `unknown`: a batch may be stored, perhaps after a crash. */
  | { readonly result: 'refused' | 'unknown'; readonly reason: string };

/** Nothing of a request is stored, nor will be. */
export class RefusedError extends Error {}

/**
 * The worker thread that owns a SQLite connection, and replies in order. A request that fails is
 * rejected, with a {@link RefusedError} when nothing is stored. Otherwise the outcome is unknown, as
 * when the thread ends before it replies.
 */
export class SqliteThread {
  /** Of the store that the thread has opened. */
  identity = '';
  /** Resolves to the reason once the thread has ended. */
  readonly ended: Promise<Error>;
  private readonly pending: PromiseWithResolvers<never>[] = [];
  private endedBy: Error | undefined;

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
      thread.identity = await thread.nextReply();
      return thread;
    } catch (cause) {
      await thread.worker.terminate();
      throw new RefusedError((cause as Error).message, { cause });
    }
  }

  get hasEnded(): boolean {
    return this.endedBy !== undefined;
  }

  /** Resolves once the plants are committed and synced. */
  commit(plants: readonly KeyedPlant[]): Promise<Insertion[]> {
    return this.request(plants);
  }

  read(query: SqliteQuery): Promise<Plant[]> {
    return this.request(query);
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

/** Why a path cannot name the file of a store, although SQLite would accept it; undefined if it can. */
export function describeUnusablePath(path: string): string | undefined {
  if (path === '') return 'must name a file, such as data/plants.db';
  if (path.startsWith(':memory:') || /^file:.*[?&]mode=memory/s.test(path)) {
    return 'must name a file: a database in memory loses all plants when the service stops';
  }
  // One letter is a drive of Windows.
  if (/^[a-z][a-z\d+.-]+:/i.test(path)) {
    return 'must be the path of a file, such as data/plants.db, without a scheme before it, and not the URL of a PostgreSQL database. Write ./ before a file name with a colon';
  }
  let folder = dirname(resolvePath(path));
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== false) return undefined;
  return `must not name a file below ${folder}, which is not a directory`;
}
