import { resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../errors/errors';
import { OptionError } from '../../errors/operator.error';
import type { Plant } from '../../plant';
import type { InsertOutcome } from '../../plants.repository';
import type { KeyedPlant } from '../keyed-plant';
import {
  type OpenStore,
  type PlantRange,
  RestartNeededError,
  type StoreDriver,
} from '../store-driver';
import { findPathError } from './sqlite.settings';
import type { RejectedPlant } from './sqlite.statements';

/** Plants are inserted in one transaction. A probe writes to the database but changes nothing. */
export type SqliteRequest = readonly KeyedPlant[] | PlantRange | 'probe' | 'close';

/** The worker also sends one as its first message, once it has opened the store. */
export type SqliteReply =
  | { readonly value: unknown }
  /** Whether the store can no longer be used: a COMMIT may have taken effect, or the thread has ended. */
  | { readonly error: string; readonly isFinal: boolean };

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
  /** The thread replies in order. */
  private readonly pending: PromiseWithResolvers<SqliteReply>[] = [];
  private readonly end = Promise.withResolvers<Error>();
  private readonly opened: OpenStore = { lost: this.end.promise };
  /** Why the store cannot be used again by this process. */
  private finalFailure: RestartNeededError | undefined;

  /**
   * @param path the file, relative to the working directory; created if it is missing
   * @throws OptionError when the path cannot be used for a store
   */
  constructor(path: string) {
    const error = findPathError(path);
    // The message omits the path, because it may be a URL with a password.
    if (error) throw new OptionError('sqlite', error);
    this.name = resolve(path);
  }

  async open(): Promise<OpenStore> {
    if (this.worker === undefined) {
      const reply = await this.start();
      if ('error' in reply) {
        const message = `sqlite names the file ${this.name}, which cannot be used: ${reply.error}.`;
        throw new OptionError('sqlite', message);
      }
    }
    return this.opened;
  }

  async commit(batch: readonly KeyedPlant[]): Promise<(InsertOutcome | PlantStoreError)[]> {
    const outcomes = await this.request<(InsertOutcome | RejectedPlant)[]>(batch);
    return outcomes.map((outcome) => {
      if (typeof outcome === 'string') return outcome;
      const cause = this.toError(outcome.reason);
      return new PlantStoreError('internal', undefined, { cause });
    });
  }

  read(range: PlantRange): Promise<Plant[]> {
    return this.request(range);
  }

  probe(): Promise<void> {
    return this.request('probe');
  }

  async close(): Promise<void> {
    if (this.worker && !this.finalFailure) await this.request('close');
  }

  /** Starts the thread. Resolves to its first reply. */
  private start(): Promise<SqliteReply> {
    // In Jest this resolves to the built file, because worker threads cannot run TypeScript.
    const file = require.resolve('./sqlite.worker.js');
    const worker = (this.worker = new Worker(file, { workerData: this.name, name: 'sqlite' }));
    let endedBy = 'the SQLite thread has ended';
    worker.on('error', (error: Error) => (endedBy = error.message));
    worker.on('exit', () => {
      for (const { resolve: reply } of this.pending.splice(0)) {
        reply({ error: endedBy, isFinal: true });
      }
      this.end.resolve(this.failForGood(endedBy));
    });
    worker.on('message', (reply: SqliteReply) => {
      this.pending.shift()?.resolve(reply);
      // Pending requests keep the process alive. An idle store does not.
      if (this.pending.length === 0) worker.unref();
    });
    return this.nextReply();
  }

  /**
   * @throws UnavailableError when nothing was stored
   * @throws OutcomeUnknownError when the request is a batch that may be stored
   */
  private async request<Value>(request: SqliteRequest): Promise<Value> {
    if (this.finalFailure || !this.worker) throw new UnavailableError({ cause: this.finalFailure });
    this.worker.ref();
    this.worker.postMessage(request);
    const reply = await this.nextReply();
    if ('value' in reply) return reply.value as Value;
    if (!reply.isFinal) throw new UnavailableError({ cause: this.toError(reply.error) });
    const cause = this.failForGood(reply.error);
    throw Array.isArray(request)
      ? new OutcomeUnknownError({ cause })
      : new UnavailableError({ cause });
  }

  private nextReply(): Promise<SqliteReply> {
    const reply = Promise.withResolvers<SqliteReply>();
    this.pending.push(reply);
    return reply.promise;
  }

  private failForGood(reason: string): Error {
    return (this.finalFailure ??= new RestartNeededError(
      `${this.name}: ${reason}. The outcome of the last commit may be unknown: restart the service.`,
    ));
  }

  private toError(reason: string): Error {
    return new Error(`${this.name}: ${reason}.`);
  }
}
