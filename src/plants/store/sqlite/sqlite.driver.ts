import { resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { OptionError } from '../../errors/operator.error';
import type { Plant } from '../../plant/plant';
import type { InsertOutcome } from '../../plants.repository';
import type { KeyedPlant } from '../idempotency';
import { type FailureKind, type PlantRange, type StoreDriver, StoreFailure } from '../store-driver';
import { logUpgrade } from '../upgrade-log';
import { findPathError } from './sqlite.settings';

/** Plants are inserted in one transaction. A probe writes to the database but changes nothing. */
export type SqliteRequest =
  | { readonly kind: 'commit'; readonly batch: readonly KeyedPlant[] }
  | { readonly kind: 'read'; readonly range: PlantRange }
  | { readonly kind: 'probe' | 'close' };

/** A {@link StoreFailure}, as a thread can send it. */
export interface SqliteFailure {
  readonly kind: FailureKind;
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
  private worker: Worker | undefined;
  /** Undefined until the store is open. */
  private onLost: ((failure: StoreFailure) => void) | undefined;
  /** The thread replies in order. */
  private readonly pending: PromiseWithResolvers<SqliteReply>[] = [];
  /** Why the store cannot be used again by this process. */
  private finalFailure: StoreFailure | undefined;

  /** @throws OptionError when the path cannot be used for a store */
  constructor(path: string) {
    const error = findPathError(path);
    // The message omits the path, because it may be a URL with a password.
    if (error) throw new OptionError('sqlite', error);
    this.name = resolve(path);
  }

  async open(_signal: AbortSignal, onLost: (failure: StoreFailure) => void): Promise<void> {
    if (this.worker) return;
    const reply = await this.start();
    if ('reason' in reply) {
      const message = `sqlite names the file ${this.name}, which cannot be used: ${reply.reason}.`;
      throw new OptionError('sqlite', message);
    }
    this.onLost = onLost;
    logUpgrade(reply.value as number);
  }

  async commit(batch: readonly KeyedPlant[]): Promise<(InsertOutcome | StoreFailure)[]> {
    const request = { kind: 'commit', batch } as const;
    const outcomes = await this.request<(InsertOutcome | SqliteFailure)[]>(request);
    return outcomes.map((outcome) =>
      typeof outcome === 'string' ? outcome : this.createFailure(outcome),
    );
  }

  read(range: PlantRange): Promise<Plant[]> {
    return this.request({ kind: 'read', range });
  }

  probe(): Promise<void> {
    return this.request({ kind: 'probe' });
  }

  async close(): Promise<void> {
    if (this.worker && !this.finalFailure) await this.request({ kind: 'close' });
  }

  private start(): Promise<SqliteReply> {
    // In Jest this resolves to the built file, because worker threads cannot run TypeScript.
    const file = require.resolve('./sqlite.worker.js');
    const worker = (this.worker = new Worker(file, { workerData: this.name, name: 'sqlite' }));
    let endedBy = 'the SQLite thread has ended';
    worker.on('error', (error: Error) => (endedBy = error.message));
    worker.on('exit', () => {
      for (const { resolve: reply } of this.pending.splice(0)) {
        reply({ kind: 'final', reason: endedBy });
      }
      const failure = this.createFailure({ kind: 'final', reason: endedBy });
      this.onLost?.(failure);
    });
    worker.on('message', (reply: SqliteReply) => {
      this.pending.shift()?.resolve(reply);
      // Pending requests keep the process alive. An idle store does not.
      if (this.pending.length === 0) worker.unref();
    });
    return this.nextReply();
  }

  /** @throws StoreFailure when the thread cannot do it */
  private async request<Value>(request: SqliteRequest): Promise<Value> {
    if (this.finalFailure || !this.worker) {
      throw new StoreFailure('notStored', this.finalFailure?.message ?? 'the store is not open');
    }
    this.worker.ref();
    this.worker.postMessage(request);
    const reply = await this.nextReply();
    if ('reason' in reply) throw this.createFailure(reply);
    return reply.value as Value;
  }

  private nextReply(): Promise<SqliteReply> {
    const reply = Promise.withResolvers<SqliteReply>();
    this.pending.push(reply);
    return reply.promise;
  }

  private createFailure({ kind, reason, code }: SqliteFailure): StoreFailure {
    if (kind !== 'final') return new StoreFailure(kind, `${this.name}: ${reason}.`, code);
    return (this.finalFailure ??= new StoreFailure(
      kind,
      `${this.name}: ${reason}. The outcome of the last commit may be unknown: restart the service.`,
      code,
    ));
  }
}
