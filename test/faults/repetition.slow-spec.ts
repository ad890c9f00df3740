import { randomInt } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { freePort } from '../support/free-port';
import { PersistentClients } from '../support/persistent-clients';
import { useServiceHome } from '../support/service-process';
import { integrity } from '../support/sqlite';

const ROUNDS = 50;
const CLIENTS = 32;

describe(`${ROUNDS} times kill -9 under clients that repeat with an Idempotency-Key`, () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const home = useServiceHome();

  it(`end with 200 for each creation, and one row (SEED=${seed})`, async () => {
    const port = await freePort();
    const lifetimes = fc.sample(fc.integer({ min: 100, max: 400 }), { seed, numRuns: ROUNDS });
    const clients = new PersistentClients([new URL(`http://127.0.0.1:${port}`)], CLIENTS);
    const start = () => home.start({ PORT: String(port) });

    for (const lifetime of lifetimes) {
      const service = await start();
      await setTimeout(lifetime);
      await service.end('SIGKILL');
    }
    const service = await start();
    const report = await clients.stop();
    await service.end();

    expect(report.unexpected).toEqual([]);
    expect(clients.differencesFrom(home.plants())).toEqual([]);
    expect(report.replays).toBeGreaterThan(0);
    expect(integrity(home.file)).toBe('ok');
  }, 900_000);
});
