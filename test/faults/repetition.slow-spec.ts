import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { printFigures } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { freePort } from '../support/free-port';
import { PersistentClients } from '../support/persistent-clients';
import { ServiceProcess } from '../support/service-process';
import { integrity, readPlants } from '../support/sqlite';

const ROUNDS = 50;
const CLIENTS = 32;

describe(`${ROUNDS} times kill -9 under clients that repeat with an Idempotency-Key`, () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));

  it('end with 200 for each creation, and one row', async () => {
    const folder = makeFolder();
    const port = await freePort();
    const lifetimes = fc.sample(fc.integer({ min: 100, max: 400 }), { seed, numRuns: ROUNDS });
    const clients = new PersistentClients([new URL(`http://127.0.0.1:${port}`)], CLIENTS);
    const start = () => ServiceProcess.start(folder, { PORT: String(port) });

    for (const lifetime of lifetimes) {
      const service = await start();
      await setTimeout(lifetime);
      service.kill('SIGKILL');
      await service.ended;
    }
    const service = await start();
    const report = await clients.stop();
    service.kill('SIGTERM');
    await service.ended;

    const file = join(folder, 'data/plants.db');
    printFigures(`repetitions through kill -9 (SEED=${seed})`, { rounds: ROUNDS, ...report });
    expect(report.unexpected).toEqual([]);
    expect(clients.differencesFrom(readPlants(file))).toEqual([]);
    expect(report.replays).toBeGreaterThan(0);
    expect(integrity(file)).toBe('ok');
    removeFolder(folder);
  }, 900_000);
});
