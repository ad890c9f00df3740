import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { useServiceHome } from '../support/service-process';
import { integrity } from '../support/sqlite';
import { until } from '../support/until';
import { type Creation, expectKept, Writers } from '../support/writers';

const CONNECTIONS = 32;
/** `npm run test:faults` takes more. */
const KILLS = Number(process.env.KILLS ?? 3);

describe(`${KILLS} times kill -9 under load`, () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const home = useServiceHome();

  it(`lose nothing acknowledged, and keep nothing refused (SEED=${seed})`, async () => {
    const creations: Creation[] = [];
    /** How many creations each service gets. */
    const lifetimes = fc.sample(fc.integer({ min: 300, max: 5000 }), { seed, numRuns: KILLS });
    for (const [round, lifetime] of lifetimes.entries()) {
      const service = await home.start();
      expect(await service.statusOf('/health/ready')).toBe(200);
      const writers = new Writers([await service.url()], CONNECTIONS, round);
      await until(() => writers.creations.length >= lifetime);
      await Promise.all([service.end('SIGKILL'), writers.stop()]);
      creations.push(...writers.creations);
    }

    expectKept(creations, home.plants());
    const count = (outcome: Creation['outcome']) =>
      creations.filter((each) => each.outcome === outcome).length;
    expect(integrity(home.file)).toBe('ok');
    expect(count('acknowledged')).toBeGreaterThan(200);
    expect(count('refused')).toBeGreaterThan(10);
  });
});
