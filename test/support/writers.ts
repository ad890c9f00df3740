import { setTimeout } from 'node:timers/promises';
import type { Plant } from '../../src/plants';
import { JSON_HEADERS } from './application';

/** A creation, and what its caller was told. */
export interface Creation {
  readonly id: number;
  /** No two creations have the same, so that a stored plant tells whose it is. */
  readonly name: string;
  /** Unknown while there is no answer, and when the answer says so or is lost. */
  outcome: 'acknowledged' | 'refused' | 'unknown';
  /** When the answer came, in milliseconds since the epoch. */
  answeredAt: number;
}

/** Clients that create plants at the same time, over any number of instances, until stopped. */
export class Writers {
  readonly creations: Creation[] = [];
  private readonly done: Promise<unknown>;
  private isStopped = false;

  /**
   * @param instances where the instances listen; each client sticks to one
   * @param round has ids and names of its own
   * @param isPersistent whether each creation is repeated, with its key, until it is answered and not
   *   with 5xx; each has an id of its own then
   */
  constructor(
    instances: readonly URL[],
    count: number,
    private readonly round = 0,
    private readonly isPersistent = false,
  ) {
    const writers = Array.from({ length: count }, (_, writer) => {
      const url = new URL('/plants', instances[writer % instances.length]);
      return this.write(url, writer);
    });
    this.done = Promise.all(writers);
  }

  /** Whether anything was acknowledged since a time, in milliseconds since the epoch. */
  hasSucceededSince(time: number): boolean {
    return this.those('acknowledged').some(({ answeredAt }) => answeredAt > time);
  }

  /** The creations that came out in a certain way. */
  those(outcome: Creation['outcome']): Creation[] {
    return this.creations.filter((creation) => creation.outcome === outcome);
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.done;
  }

  private async write(url: URL, writer: number): Promise<void> {
    for (let count = 0; !this.isStopped; count++) {
      // Every third id is one that the other writers want too.
      const isShared = count % 3 === 0 && !this.isPersistent;
      const id = this.round * 1e9 + (isShared ? count : 1e6 * (writer + 1) + count);
      const name = `${this.round}-${writer}-${count}`;
      const creation: Creation = { id, name, outcome: 'unknown', answeredAt: 0 };
      this.creations.push(creation);
      const error = await (this.isPersistent ? persist : create)(url, id, name);
      if (error === undefined || error === 50400) continue;
      creation.outcome = error === 0 ? 'acknowledged' : 'refused';
      creation.answeredAt = Date.now();
      if (error === 50300) await setTimeout(10);
    }
  }
}

/** Asks for a plant. The number of the error is 0 for none, and undefined without an answer. */
export async function create(
  url: URL | string,
  id: number,
  name: string,
  headers: Record<string, string> = {},
): Promise<number | undefined> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { ...JSON_HEADERS, ...headers },
      body: JSON.stringify({ id, name }),
    });
    const { error = 0 } = (await response.json()) as { error?: number };
    return error;
  } catch {
    return undefined;
  }
}

/** Asks for a plant again and again, until the answer is final. */
async function persist(url: URL, id: number, name: string): Promise<number> {
  for (;;) {
    const error = await create(url, id, name, { 'idempotency-key': name });
    if (error !== undefined && error < 50000) return error;
    await setTimeout(20);
  }
}

/** Holds what callers were told against what is stored in the end. */
export function expectKept(creations: readonly Creation[], stored: readonly Plant[]): void {
  const names = new Map(stored.map(({ id, name }) => [Number(id), name]));
  const acknowledged = creations.filter(({ outcome }) => outcome === 'acknowledged');
  const lastOfId = new Map(acknowledged.map((creation) => [creation.id, creation]));
  expect({
    lost: acknowledged.filter(({ id, name }) => names.get(id) !== name),
    refusedButStored: creations.filter(
      ({ id, name, outcome }) => outcome === 'refused' && names.get(id) === name,
    ),
    acknowledgedTwice: acknowledged.filter((creation) => lastOfId.get(creation.id) !== creation),
  }).toEqual({ lost: [], refusedButStored: [], acknowledgedTwice: [] });
}
