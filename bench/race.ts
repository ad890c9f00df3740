import { DatabaseSync } from 'node:sqlite';
import type { Contestant } from './contestants';
import type { Databases } from './databases';
import { connections, type Load, Server } from './server';
import { type Measured, type Subject, takeTurns } from './statistics';

/** The settings that all groups of a run share. */
export interface Run {
  readonly databases: Databases;
  readonly rounds: number;
  /** The duration of a turn in seconds. */
  readonly duration: number;
  /** The number of plants to export and import. */
  readonly plants: number;
  /** The number of plants in a full store. */
  readonly full: number;
  /** Whether to measure the products of others, which have to be installed. */
  readonly hasProducts: boolean;
}

/**
 * Starts contestants, and runs them and tools in turns. Then compares the number of plants in each store
 * with the number of requests that got 200.
 *
 * @param contestants measured at each number of connections
 * @param counts numbers of connections
 * @param others measured at 64 connections
 */
export async function race(
  run: Run,
  contestants: readonly Contestant[],
  counts: readonly number[],
  others: readonly Contestant[],
  tools: readonly Subject[] = [],
): Promise<readonly Measured[]> {
  const servers: Server[] = [];
  for (const contestant of [...contestants, ...others]) servers.push(await start(run, contestant));
  const [ours] = servers;
  const subjects = servers.flatMap((server, at) =>
    (at < contestants.length ? counts : [64]).map((count) => ({
      ...underLoad(server, connections(count, run.duration), nameOf(server, count)),
      reference: ours && nameOf(ours, count),
    })),
  );
  const measured = await takeTurns([...subjects, ...tools], run.rounds);
  for (const server of servers) {
    const stored = await countPlants(run.databases, server);
    if (stored !== server.created) {
      throw new Error(`${server.contestant.name}: ${server.created} created, ${stored} stored`);
    }
  }
  await stop(...servers);
  return measured;
}

function nameOf({ contestant }: Server, count: number): string {
  return `${contestant.name}, ${count} connection${count === 1 ? '' : 's'}`;
}

export function underLoad(server: Server, load: Load, name: string): Subject {
  return { name, turn: () => server.measure(load) };
}

/** Starts a contestant on a new database, and warms it up. */
export async function start({ databases }: Run, contestant: Contestant): Promise<Server> {
  const server = await Server.start(contestant, await databases.create(contestant.store));
  await server.warmUp();
  return server;
}

export async function stop(...servers: Server[]): Promise<void> {
  for (const server of servers) await server.stop();
}

/** Counts the plants of a server in its database. */
async function countPlants(
  { postgres }: Databases,
  { contestant, database }: Server,
): Promise<number> {
  const query = 'SELECT count(*) AS plants FROM plants';
  if (contestant.store === 'postgres') {
    const [row] = await postgres.execute(query, new URL(database).pathname.slice(1));
    return Number(row?.plants);
  }
  const file = new DatabaseSync(database, { readOnly: true });
  const row = file.prepare(query).get();
  file.close();
  return Number(row?.plants);
}
