import { setTimeout } from 'node:timers/promises';
import type { Plant } from '../../src/plants';
import { create } from './writers';

/** Milliseconds between an attempt that failed and the next. */
const PAUSE = 20;

/**
 * Clients that create plants at the same time, and repeat each creation with its key until it is
 * answered 200: when there is no answer, and when the answer is 5xx.
 */
export class PersistentClients {
  private readonly names = new Map<bigint, string>();
  /** Answers that no client should get, such as 40003, by number. */
  readonly unexpected: number[] = [];
  private readonly done: Promise<unknown>;
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
  async stop(): Promise<void> {
    this.isStopped = true;
    await this.done;
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
        const url = urls[attempt % urls.length] ?? '';
        const error = await create(url, id, name, { 'idempotency-key': `"${name}"` });
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
