import { join } from 'node:path';
import fc from 'fast-check';
import { creation, putLoad } from './load';
import { ServiceProcess } from './service-process';
import { integrity, readPlants } from './sqlite';

const CONNECTIONS = 32;

/** What killing the service under load showed. */
export interface KillReport {
  readonly acknowledged: number;
  readonly refused: number;
  readonly acknowledgedAndLost: number;
  readonly refusedButStored: number;
  readonly integrity: unknown;
}

interface Creation {
  readonly id: number;
  readonly name: string;
  outcome: 'acknowledged' | 'refused' | 'unanswered';
}

/**
 * Starts the service, loads it, kills it with SIGKILL after a random number of answers, and so on;
 * then compares what is stored with what was answered. A third of the creations ask for ids that
 * others want too.
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
    expect(await service.statusOf('/health/ready')).toBe(200);

    let dead = false;
    let answers = 0;
    const current: Creation[] = [];
    const load = putLoad({
      url,
      connections: CONNECTIONS,
      next: () => {
        if (dead) return undefined;
        const sequence = current.length;
        const id =
          round * 10_000_000 +
          (sequence % 3 === 0 ? Math.floor(sequence / 6) : 1_000_000 + sequence);
        current.push({ id, name: `${round}-${sequence}`, outcome: 'unanswered' });
        return { ...creation(id, `${round}-${sequence}`), id: sequence };
      },
      onAnswer: (sequence, { status }) => {
        const answered = current[sequence];
        if (answered) answered.outcome = status === 200 ? 'acknowledged' : 'refused';
        if (++answers !== lifetime) return;
        dead = true;
        service.kill('SIGKILL');
      },
    });
    await Promise.all([load, service.ended]);
    creations.push(...current);
  }

  const file = join(folder, 'data/plants.db');
  const stored = new Map(readPlants(file).map(({ id, name }) => [Number(id), name]));
  const isStored = ({ id, name }: Creation) => stored.get(id) === name;
  const having = (outcome: Creation['outcome']) =>
    creations.filter((each) => each.outcome === outcome);
  return {
    acknowledged: having('acknowledged').length,
    refused: having('refused').length,
    acknowledgedAndLost: having('acknowledged').filter((each) => !isStored(each)).length,
    refusedButStored: having('refused').filter(isStored).length,
    integrity: integrity(file),
  };
}
