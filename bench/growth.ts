import type { Contestant } from './contestants';
import type { Run } from './race';
import { ProcessorShare } from './processor-share';
import { connections, Server } from './server';
import { type Figure, type Measured, takeTurns, type Turn } from './statistics';

/** The number of connections to each instance. */
const CONNECTIONS = 16;

/**
 * Measures how the rate grows with the number of instances on one database, each with the same share of a
 * core. Returns undefined if this machine does not let us limit processes.
 *
 * @param share the share of a core that each instance gets
 * @param counts numbers of instances, in ascending order
 */
export async function measureGrowth(
  { databases, rounds, duration }: Run,
  contestant: Contestant,
  share: number,
  counts: readonly number[],
): Promise<readonly Measured[] | undefined> {
  const shares: ProcessorShare[] = [];
  const instances: Server[] = [];
  const database = await databases.create(contestant.store);
  try {
    for (let at = 0; at < Math.max(...counts); at++) {
      const limited = ProcessorShare.create(String(at), share);
      if (!limited) return undefined;
      shares.push(limited);
      const instance = await Server.start(contestant, database);
      instances.push(instance);
      await instance.warmUp();
      limited.limit(instance.pid);
    }
    const subjects = counts.map((count) => ({
      name: `${count} ${count === 1 ? 'process' : 'processes'} with ${Math.round(share * 100)} % of a core each`,
      turn: () => measureTogether(instances.slice(0, count), CONNECTIONS, duration),
    }));
    // The first turn under a limit is slower than all others.
    await measureTogether(instances, CONNECTIONS, duration);
    return await takeTurns(subjects, rounds);
  } finally {
    for (const instance of instances) await instance.stop();
    for (const each of shares) each.remove();
  }
}

/** Loads several instances at the same time. */
async function measureTogether(
  instances: readonly Server[],
  connectionsEach: number,
  duration: number,
): Promise<Turn> {
  // A process that waits for a lock of SQLite for a second rejects its requests.
  const load = { ...connections(connectionsEach, duration), mayReject: true };
  const turns = await Promise.all(instances.map((instance) => instance.measure(load)));
  const valuesOf = (figure: Figure): number[] => turns.map((turn) => turn[figure] ?? NaN);
  return {
    rate: valuesOf('rate').reduce((sum, rate) => sum + rate),
    p50: Math.max(...valuesOf('p50')),
    p99: Math.max(...valuesOf('p99')),
  };
}
