import { join } from 'node:path';
import fc from 'fast-check';
import { ServiceProcess } from './service-process';
import { integrity, readPlants } from './sqlite';
import { until } from './until';
import { brokenPromises, type Creation, Writers } from './writers';

const CONNECTIONS = 32;

/** What killing the service under load showed. */
export interface KillReport {
  readonly acknowledged: number;
  readonly refused: number;
  readonly acknowledgedAndLost: number;
  readonly refusedButStored: number;
  readonly integrity: unknown;
}

/**
 * Starts the service, loads it, kills it with SIGKILL after a random number of creations, and so on;
 * then compares what is stored with what was answered.
 *
 * @param seed of the numbers
 */
export async function killUnderLoad(
  folder: string,
  rounds: number,
  seed: number,
): Promise<KillReport> {
  const creations: Creation[] = [];
  const lifetimes = fc.sample(fc.integer({ min: 100, max: 5000 }), { seed, numRuns: rounds });

  for (const [round, lifetime] of lifetimes.entries()) {
    const service = await ServiceProcess.start(folder);
    const url = await service.url();
    const ready = await fetch(new URL('/health/ready', url));
    if (ready.status !== 200) throw new Error('not ready at the start');
    const writers = new Writers([url], CONNECTIONS, round);
    await until(() => writers.creations.length >= lifetime);
    service.kill('SIGKILL');
    await Promise.all([service.ended, writers.stop()]);
    creations.push(...writers.creations);
  }

  const file = join(folder, 'data/plants.db');
  const { lost, refusedButStored } = brokenPromises(creations, readPlants(file));
  const count = (outcome: Creation['outcome']) =>
    creations.filter((each) => each.outcome === outcome).length;
  return {
    acknowledged: count('acknowledged'),
    refused: count('refused'),
    acknowledgedAndLost: lost.length,
    refusedButStored: refusedButStored.length,
    integrity: integrity(file),
  };
}
