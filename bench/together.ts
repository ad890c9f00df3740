import { loadavg } from 'node:os';
import type { Contestant } from './contestants';
import type { Databases } from './databases';
import { Server } from './server';
import type { Measured, Turn } from './statistics';

export interface SharedLoad {
  /** Numbers of connections. Each one is measured on its own. */
  readonly connections: readonly number[];
  /** How often all contestants are started, because V8 optimizes differently each time. */
  readonly starts: number;
  /** Turns per start and number of connections. */
  readonly rounds: number;
  /** The duration of a turn in seconds. */
  readonly duration: number;
}

/**
 * Starts contestants on databases of their own and loads all of them at the same moment. On a shared machine,
 * the processor time of one build varies by a sixth from turn to turn, but hardly between two that run at the
 * same time. Returns the measured contestants per number of connections.
 */
export async function loadTogether(
  contestants: readonly Contestant[],
  databases: Databases,
  { connections, starts, rounds, duration }: SharedLoad,
): Promise<readonly (readonly Measured[])[]> {
  const measured = connections.map(() =>
    contestants.map(({ name }) => ({ name, turns: [] as Turn[] })),
  );
  for (let start = 0; start < starts; start++) {
    const servers = await Promise.all(
      contestants.map(async (contestant) => {
        const environment = { ...contestant.environment, ...databases.environment };
        return Server.start(
          { ...contestant, environment },
          await databases.create(contestant.store),
        );
      }),
    );
    await Promise.all(servers.map((server) => server.warmUp()));
    for (let round = 0; round < rounds; round++) {
      for (const [index, count] of connections.entries()) {
        const load = { connections: count, duration };
        const machine = { load: loadavg()[0] };
        const turns = await Promise.all(servers.map((server) => server.measure(load)));
        for (const [at, turn] of turns.entries()) {
          measured[index]?.[at]?.turns.push({ ...machine, ...turn });
        }
      }
    }
    for (const server of servers) await server.stop();
  }
  return measured;
}
