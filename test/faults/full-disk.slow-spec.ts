/** Shows that a full disk costs no plant. Needs Linux with user namespaces, and takes minutes. */
import { randomInt } from 'node:crypto';
import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { errorNumbers } from '../support/error-bodies';
import { type CreateRequest, createMany, createUntil, expectOutcomesMatch } from '../support/load';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { SmallDisk } from '../support/small-disk';
import { checkIntegrity, readPlants } from '../support/sqlite';

const DISK_BYTES = 2 ** 20;
const ROUNDS = 20;

describe('the service on a full disk', () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const home = useServiceHome();
  let disk: SmallDisk;
  let service: ServiceProcess;
  let creations: CreateRequest[];
  beforeEach(async () => {
    mkdirSync(dirname(home.file));
    disk = await SmallDisk.mount(dirname(home.file), DISK_BYTES);
    creations = [];
  });
  afterEach(() => disk.unmount());

  async function start(): Promise<void> {
    service = await home.start({ DATABASE_URL: `sqlite:${home.file}` }, disk.wrapper);
  }

  const failures = () => creations.filter(({ outcome = 200 }) => outcome !== 200);

  /** Creates plants until this number of them failed. */
  function createUntilFailures(count: number): Promise<void> {
    const end = failures().length + count;
    const options = { connections: 16, name: 'x'.repeat(1000) };
    return createUntil(() => failures().length >= end, service, creations, options);
  }

  /** Checks a copy of the database, which the service has closed. SQLite cannot open it on the small disk. */
  function expectNothingLost(): void {
    const copy = join(home.folder, 'copy.db');
    copyFileSync(join(disk.path, 'plants.db'), copy);
    expectOutcomesMatch(creations, readPlants(copy));
    expect(checkIntegrity(copy)).toBe('ok');
    for (const { outcome } of failures()) expect(outcome).toBe(errorNumbers.unavailable);
  }

  it('returns 503, is not ready, and recovers without a restart', async () => {
    await start();
    disk.fill(100_000);

    await createUntilFailures(20);
    disk.fill();
    await createUntilFailures(20);
    let notReady = 0;
    while (notReady < 20) {
      const isReady = (await service.getStatus('/health/ready')) !== 503;
      // A probe, which is small, may succeed in the space that a failed commit has left in the WAL.
      if (isReady) await createUntilFailures(1);
      notReady = isReady ? 0 : notReady + 1;
      await setTimeout(100);
    }
    expect(await service.getStatus('/health/live')).toBe(200);
    disk.release();
    await service.waitUntilReady();
    await createMany(10, service, creations);

    expect(await service.end()).toEqual({ code: 0, signal: null });
    expectNothingLost();
    for (const { outcome } of creations.slice(-10)) expect(outcome).toBe(200);
  });

  it.each([0, 10])('exits at startup with one message, and keeps %d plants', async (plants) => {
    if (plants > 0) {
      await start();
      await createMany(plants, service, creations, { connections: 1 });
      await service.end('SIGKILL');
    }
    disk.fill();

    const environment = { AUTH_TOKENS: 'a-token', DATABASE_URL: `sqlite:${home.file}` };
    service = home.spawn(environment, disk.wrapper);

    expect(await service.ended).toEqual({ code: 1, signal: null });
    expect(service.stderr).toMatch(
      /^DATABASE_URL names the file \S+, which cannot be used: [^(]+ \(ENOSPC: no space left on device, \S+ '\S+\/data'\)\.\n$/,
    );
    disk.release();
    await start();
    expect(await service.end()).toEqual({ code: 0, signal: null });
    expectNothingLost();
    expect(creations).toHaveLength(plants);
  });

  it(`never restores a rejected plant after kill -9 (SEED=${seed})`, async () => {
    const space = fc.sample(fc.integer({ min: 0, max: 150_000 }), { seed, numRuns: ROUNDS });

    for (const free of space) {
      await start();
      disk.fill(free);
      await createUntilFailures(5);
      await service.end('SIGKILL');
      disk.release();
    }
    await start();
    await service.end();

    expectNothingLost();
  });
});
