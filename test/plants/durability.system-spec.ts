/** Kills the service, a process, under load. Twice by day; `npm run test:faults` takes minutes. */
import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { errorNumbers } from '../support/error-bodies';
import { type CreateRequest, expectOutcomesMatch, Load } from '../support/load';
import { useServiceHome } from '../support/service-process';
import { checkIntegrity } from '../support/sqlite';
import { until } from '../support/until';

const CONNECTIONS = 32;
/** `npm run test:faults` sets a larger number. */
const KILLS = Number(process.env.KILLS ?? 2);

describe(`a service that is killed ${KILLS} times under load`, () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const home = useServiceHome();

  it(`keeps every acknowledged plant and no rejected one (SEED=${seed})`, async () => {
    const creations: CreateRequest[] = [];
    /** The number of create requests after which each service is killed. */
    const lifetimes = fc.sample(fc.integer({ min: 300, max: 3000 }), { seed, numRuns: KILLS });
    for (const [round, lifetime] of lifetimes.entries()) {
      const service = await home.start();
      expect(await service.getStatus('/health/ready')).toBe(200);
      const load = Load.startCompeting([await service.url()], CONNECTIONS, { round });
      await until(() => load.creations.length >= lifetime);
      await Promise.all([service.end('SIGKILL'), load.stop()]);
      creations.push(...load.creations);
    }

    expectOutcomesMatch(creations, home.plants());
    const count = (outcome: number) => creations.filter((each) => each.outcome === outcome).length;
    expect(checkIntegrity(home.file)).toBe('ok');
    expect(count(200)).toBeGreaterThan(200);
    expect(count(errorNumbers.idTaken)).toBeGreaterThan(10);
  });
});
