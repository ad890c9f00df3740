import { randomInt } from 'node:crypto';
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { errorBodies } from '../support/error-bodies';
import { printFigures } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { creation, putLoad } from '../support/load';
import { reportOutcomes } from '../support/outcomes';
import { ServiceProcess } from '../support/service-process';
import { SmallDisk } from '../support/small-disk';
import { until } from '../support/until';

const SIZE = 2 ** 20;
const ROUNDS = 20;

describe('a full disk', () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const outcomes = new Map<number, number>();
  let folder: string;
  let disk: SmallDisk;
  let service: ServiceProcess;
  beforeEach(async () => {
    folder = makeFolder();
    mkdirSync(join(folder, 'data'));
    disk = await SmallDisk.mount(join(folder, 'data'), SIZE);
    outcomes.clear();
  });
  afterEach(async () => {
    service.kill('SIGKILL');
    await service.ended;
    await disk.unmount();
    removeFolder(folder);
  });

  async function start(): Promise<URL> {
    const environment = { DATABASE_URL: `sqlite:${join(folder, 'data/plants.db')}` };
    service = await ServiceProcess.start(folder, environment, disk.wrapper);
    return service.url();
  }

  let nextId = 1;

  /** Creates plants until so many were refused, and notes what became of each. */
  async function createUntilRefused(url: URL, refusals: number, connections = 16): Promise<void> {
    let refused = 0;
    await putLoad({
      url,
      connections,
      next: () => (refused < refusals ? creation(nextId++, 'x'.repeat(1000)) : undefined),
      onAnswer: (id, { status, body }) => {
        const { error = 200 } = JSON.parse(body) as { error?: number };
        outcomes.set(id, error);
        if (status === 200) return;
        expect([errorBodies.unavailable, errorBodies.outcomeUnknown]).toContainEqual(
          JSON.parse(body),
        );
        refused++;
      },
    });
  }

  /** A copy of the database once the service has closed it: SQLite does not open it where it is. */
  function databaseFile(): string {
    const copy = join(folder, 'copy.db');
    copyFileSync(join(disk.path, 'plants.db'), copy);
    return copy;
  }

  const statusOf = async (url: URL, path: string) => (await fetch(new URL(path, url))).status;

  it('is answered 503 or 504, is not ready, and is got over without a restart', async () => {
    const url = await start();
    disk.fill(100_000);

    await createUntilRefused(url, 20);
    disk.fill();
    await createUntilRefused(url, 20);
    const whileFull: number[] = [];
    for (let probe = 0; probe < 20; probe++) {
      whileFull.push(await statusOf(url, '/health/ready'));
      await setTimeout(100);
    }
    const live = await statusOf(url, '/health/live');
    disk.release();
    const released = performance.now();
    await until(async () => (await statusOf(url, '/health/ready')) === 200);
    const recovery = performance.now() - released;
    const again: number[] = [];
    await putLoad({
      url,
      connections: 1,
      next: () => (again.length < 10 ? creation(nextId++) : undefined),
      onAnswer: (_id, { status }) => again.push(status),
    });
    service.kill('SIGTERM');
    const { code } = await service.ended;

    const report = {
      ...reportOutcomes(outcomes, databaseFile()),
      'readiness while full': [...new Set(whileFull)].join(),
      'liveness while full': live,
      'ready again after (ms)': Math.round(recovery),
      'creations afterwards': [...new Set(again)].join(),
      'exit code': code,
    };
    printFigures('a full disk', report);
    expect(report).toMatchObject({
      'acknowledged and lost': 0,
      'refused but stored': 0,
      'readiness while full': '503',
      'liveness while full': 200,
      'creations afterwards': '200',
      'exit code': 0,
      integrity: 'ok',
    });
    expect(report.acknowledged).toBeGreaterThan(0);
  }, 60_000);

  it('refuses a creation, which is stored when it is sent again with its Idempotency-Key', async () => {
    await start();
    const create = async (id: number): Promise<number | string> => {
      const body = JSON.stringify({ id, name: 'x'.repeat(10_000) });
      const response = await service.post(body, { 'idempotency-key': `creation-${id}` });
      if (!response.ok) return ((await response.json()) as { error: number }).error;
      return response.headers.has('idempotent-replayed') ? 'replayed' : 'created';
    };
    const stored = nextId++;
    expect(await create(stored)).toBe('created');

    disk.fill();
    // The log may have room for some more.
    while ((await create(nextId)) === 'created') nextId++;
    const refused = nextId++;
    expect(await create(refused)).toBe(50300);
    disk.release();
    let outcome: number | string | undefined;
    await until(async () => (outcome = await create(refused)) !== 50300);

    expect(outcome).toBe('created');
    expect([await create(refused), await create(stored)]).toEqual(['replayed', 'replayed']);
  }, 60_000);

  it(`never brings back, after kill -9, what it refused (SEED=${seed})`, async () => {
    const space = fc.sample(fc.integer({ min: 0, max: 150_000 }), { seed, numRuns: ROUNDS });

    for (const free of space) {
      const url = await start();
      disk.fill(free);
      await createUntilRefused(url, 5);
      service.kill('SIGKILL');
      await service.ended;
      disk.release();
    }
    await start();
    service.kill('SIGTERM');
    await service.ended;

    const report = { rounds: ROUNDS, ...reportOutcomes(outcomes, databaseFile()) };
    printFigures(`a full disk, then kill -9 (SEED=${seed})`, report);
    expect(report).toMatchObject({
      'acknowledged and lost': 0,
      'refused but stored': 0,
      integrity: 'ok',
    });
  }, 120_000);
});
