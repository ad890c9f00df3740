import { setTimeout } from 'node:timers/promises';
import type { Plant } from '../../src/plants';
import { create } from './writers';

/** Milliseconds between an attempt that failed and the next. */
const PAUSE = 20;

export interface PersistenceReport {
  /** Creations, each with an id and a key of its own, and each answered 200 in the end. */
  readonly creations: number;
  /** Requests that were sent for them. */
  readonly attempts: number;
  /** Creations whose last answer said that an earlier attempt had stored the plant. */
  readonly replays: number;
  /** Answers that no client should get, such as 40003, by number. */
  readonly unexpected: readonly number[];
}

/**
 * Clients that create plants at the same time, and repeat each creation with its key until it is
 * answered 200: when there is no answer, and when the answer is 5xx.
 */
export class PersistentClients {
  private readonly names = new Map<bigint, string>();
  private readonly unexpected: number[] = [];
  private readonly done: Promise<unknown>;
  private attempts = 0;
  private replays = 0;
  private isStopped = false;

  /** @param instances where the instances listen; each attempt goes to the next one */
  constructor(instances: readonly URL[], count: number) {
    const urls = instances.map((url) => new URL('/plants', url).href);
    const clients = Array.from({ length: count }, (_, client) => this.createMany(urls, client));
    this.done = Promise.all(clients);
  }

  /** How many creations have been answered 200. */
  get successes(): number {
    return this.names.size;
  }

  /** Lets each client finish its creation. */
  async stop(): Promise<PersistenceReport> {
    this.isStopped = true;
    await this.done;
    const { attempts, replays, unexpected } = this;
    return { creations: this.names.size, attempts, replays, unexpected };
  }

  /** How what is stored differs from what was created: a plant that is missing, or one too many. */
  differencesFrom(stored: readonly Plant[]): Plant[] {
    const wrong = stored.filter(({ id, name }) => this.names.get(id) !== name);
    const ids = new Set(stored.map(({ id }) => id));
    const missing = [...this.names].filter(([id]) => !ids.has(id));
    return [...wrong, ...missing.map(([id, name]) => ({ id, name }))];
  }

  private async createMany(urls: readonly string[], client: number): Promise<void> {
    for (let count = 0; !this.isStopped; count++) {
      const id = client * 1_000_000 + count;
      const name = `${client}-${count}`;
      for (let attempt = client; ; attempt++) {
        this.attempts++;
        const url = urls[attempt % urls.length] ?? '';
        const { error, isReplay } = await create(url, id, name, { 'idempotency-key': `"${name}"` });
        if (isReplay) this.replays++;
        if (error === 0) break;
        if (error !== undefined && error < 50000) {
          this.unexpected.push(error);
          return;
        }
        await setTimeout(PAUSE);
      }
      this.names.set(BigInt(id), name);
    }
  }
}
