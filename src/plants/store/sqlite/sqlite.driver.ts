import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { OptionError } from '../../errors/operator.error';
import type { Plant } from '../../plant/plant';
import type { InsertOutcome } from '../../plants.repository';
import type { KeyedPlant } from '../idempotency';
import {
  type FailureKind,
  type FailureReach,
  type InsertResult,
  type PlantRange,
  type StoreDriver,
  StoreFailure,
} from '../store-driver';
import { logUpgrade } from '../upgrade-log';
import { walPathOf } from './sqlite.files';
import { findPathError } from './sqlite.settings';

/** How long measuring the WAL may take: the disk may hang. */
const LOG_MEASUREMENT_MS = 1000;

/** Plants are inserted in one transaction. A probe writes to the database but changes nothing. */
export type SqliteRequest =
  | { readonly kind: 'commit'; readonly batch: readonly KeyedPlant[] }
  | { readonly kind: 'read'; readonly range: PlantRange }
  | { readonly kind: 'probe' | 'close' };

/** A {@link StoreFailure}, as a thread can send it. */
export interface SqliteFailure {
  readonly kind: FailureKind;
  readonly reach: FailureReach;
  readonly reason: string;
  /** The result code of SQLite. */
  readonly code?: number | undefined;
}

/** The first message of the worker has the schema version that it found. */
export type SqliteReply = { readonly value: unknown } | SqliteFailure;

/**
 * A SQLite file, opened by `node:sqlite` in a worker thread, because a sync blocks its thread. Each batch is one
 * transaction, synced to the disk before it is acknowledged.
 *
 * A COMMIT whose outcome is unclear is final, and so are an I/O error of a checkpoint and the end of the thread: only
 * the next start of the process can use the file again. It first writes the write-ahead log again.
 */
export class SqliteDriver implements StoreDriver {
  /** The absolute path of the file. */
  readonly name: string;
  /** The thread commits in order: two batches would only be smaller. */
  readonly maxBatches = 1;
  /** The thread that has opened the store. Undefined before that, and once the store is closed. It may have failed. */
  private worker: Worker | undefined;
  private walPath: string;
  /** The size of the WAL when it was measured last. */
  private latestLogBytes = 0;
  /** The requests without a reply. The thread replies in their order. */
  private readonly pending: PromiseWithResolvers<SqliteReply>[] = [];
  /** Why the store cannot be used again by this process. */
  private finalFailure: StoreFailure | undefined;

  /** @throws OptionError when the path cannot be used for a store */
  constructor(path: string) {
    const error = findPathError(path);
    // The message omits the path, because it may be a URL with a password.
    if (error) throw new OptionError('sqlite', error);
    this.name = resolve(path);
    this.walPath = `${this.name}-wal`;
  }

  async open(_signal: AbortSignal, onLost: (failure: StoreFailure) => void): Promise<void> {
    // After a final failure, each request reports it.
    if (this.worker) return;
    const worker = this.startWorker(onLost);
    const reply = await this.nextReply();
    // Then the thread ends.
    if ('reason' in reply) {
      const message = `sqlite names the file ${this.name}, which cannot be used: ${reply.reason}.`;
      throw new OptionError('sqlite', message);
    }
    this.worker = worker;
    this.walPath = walPathOf(this.name);
    logUpgrade(reply.value as number);
  }

  async commit(batch: readonly KeyedPlant[]): Promise<InsertResult[]> {
    const request = { kind: 'commit', batch } as const;
    const outcomes = await this.request<(InsertOutcome | SqliteFailure)[]>(request);
    return outcomes.map((outcome) =>
      typeof outcome === 'string' ? outcome : this.toStoreFailure(outcome),
    );
  }

  read(range: PlantRange): Promise<Plant[]> {
    return this.request({ kind: 'read', range });
  }

  probe(): Promise<void> {
    return this.request({ kind: 'probe' });
  }

  async logBytes(): Promise<number> {
    const measuring = stat(this.walPath).then(
      ({ size }) => size,
      // There is no WAL before the store is open, and after it is closed.
      () => 0,
    );
    const recording = measuring.then((size) => {
      this.latestLogBytes = size;
    });
    await Promise.race([recording, sleep(LOG_MEASUREMENT_MS, undefined, { ref: false })]);
    return this.latestLogBytes;
  }

  async close(): Promise<void> {
    if (!this.worker || this.finalFailure) return;
    const closing = this.request({ kind: 'close' });
    // From now on, the end of the thread is not a failure.
    this.worker = undefined;
    await closing;
  }

  private startWorker(onLost: (failure: StoreFailure) => void): Worker {
    // In Jest this resolves to the built file, because worker threads cannot run TypeScript.
    const file = require.resolve('./sqlite.worker.js');
    const worker = new Worker(file, { workerData: this.name, name: 'sqlite' });
    let endedBy = 'the SQLite thread has ended';
    worker.on('error', (error: Error) => {
      endedBy = error.message;
    });
    worker.on('exit', () => {
      const failure = { kind: 'unknown', reach: 'process', reason: endedBy } as const;
      for (const { resolve: reply } of this.pending.splice(0)) reply(failure);
      if (worker === this.worker) onLost(this.recordFinalFailure(failure));
    });
    worker.on('message', (reply: SqliteReply) => {
      this.pending.shift()?.resolve(reply);
      // Pending requests keep the process alive. An idle store does not.
      if (this.pending.length === 0) worker.unref();
    });
    return worker;
  }

  /** @throws StoreFailure when the thread cannot do it */
  private async request<Value>(request: SqliteRequest): Promise<Value> {
    if (!this.worker) throw new StoreFailure('notStored', `${this.name}: the store is not open.`);
    if (this.finalFailure) {
      // This request was not sent, so it has stored nothing.
      const { message, code, reach } = this.finalFailure;
      throw new StoreFailure('notStored', message, { code, reach });
    }
    this.worker.ref();
    this.worker.postMessage(request);
    const reply = await this.nextReply();
    if ('reason' in reply) throw this.toStoreFailure(reply);
    return reply.value as Value;
  }

  private nextReply(): Promise<SqliteReply> {
    const reply = Promise.withResolvers<SqliteReply>();
    this.pending.push(reply);
    return reply.promise;
  }

  private toStoreFailure(failure: SqliteFailure): StoreFailure {
    const { kind, reach, reason, code } = failure;
    if (reach === 'process') return this.recordFinalFailure(failure);
    return new StoreFailure(kind, `${this.name}: ${reason}.`, { code, reach });
  }

  /** Returns the first final failure: a thread may end because of an earlier one. */
  private recordFinalFailure({ kind, reason, code, reach }: SqliteFailure): StoreFailure {
    const message = `${this.name}: ${reason}. The outcome of the last commit may be unknown: restart the service.`;
    this.finalFailure ??= new StoreFailure(kind, message, { code, reach });
    return this.finalFailure;
  }
}
