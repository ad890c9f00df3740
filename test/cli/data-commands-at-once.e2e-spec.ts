import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { useFolder } from '../support/folder';
import { plantStore } from '../support/plant-store';
import type { Run } from '../support/run';
import { ServiceProcess } from '../support/service-process';
import { integrity } from '../support/sqlite';
import { SqliteStore } from '../support/stores';

jest.setTimeout(240_000);

const PLANTS = 2000;

const folder = useFolder();
let store: SqliteStore;
let services: ServiceProcess[];
beforeEach(() => {
  store = new SqliteStore();
  services = [];
});
afterEach(async () => {
  for (const service of services) await service.end('SIGKILL');
  store.remove();
});

async function startService(): Promise<void> {
  services.push(await ServiceProcess.start(folder, { DATABASE_URL: store.url }));
}

/** Imports some plants, with ids that no other part has. */
function importPart(part: number): Promise<Run> {
  const ids = Array.from({ length: PLANTS }, (_, at) => part * PLANTS + at);
  const input = ids.map((id) => `{"id":${id},"name":"Fern"}\n`).join('');
  return plantStore(['import'], { DATABASE_URL: store.url }, { input });
}

const run = (...args: string[]): Promise<Run> => plantStore(args, { DATABASE_URL: store.url });

const faultsOf = (runs: readonly Run[]): string[] =>
  runs.filter(({ code }) => code !== 0).map(({ stdout, stderr }) => stdout + stderr);

it('services that start and all commands wait for each other on one file', async () => {
  await importPart(0);
  const copies = [0, 1].map((at) => join(folder, `copy-${at}.db`));
  const starts = [startService(), startService()];
  const runs = await Promise.all([
    ...[1, 2, 3, 4].map(importPart),
    ...copies.map((copy) => run('backup', copy)),
    run('export'),
    run('export', join(folder, 'plants.ndjson')),
    run('check', '--deep'),
  ]);
  await Promise.all(starts);

  expect(faultsOf(runs)).toEqual([]);
  for (const copy of copies) expect(integrity(copy)).toBe('ok');
  for (const service of services) expect(service.stdout).not.toMatch(/locked|"level":[56]0/);
  expect(store.plants()).toHaveLength(PLANTS * 5);
});

it('services and imports that find no file make one', async () => {
  const starts = [startService(), startService(), startService()];
  const runs = await Promise.all([0, 1, 2, 3].map(importPart));
  await Promise.all(starts);

  expect(faultsOf(runs)).toEqual([]);
  expect(store.plants()).toHaveLength(PLANTS * 4);
});

it('every command and a service wait while another program has the file alone for a moment', async () => {
  await importPart(0);
  const backup = join(folder, 'backup.db');
  await run('backup', backup);
  const done = new AbortController();
  const holding = (async () => {
    while (!done.signal.aborted) {
      await holdFor(100);
      await setTimeout(100);
    }
  })();

  const runs: Run[] = [];
  for (let part = 1; part <= 5; part++) runs.push(await importPart(part));
  runs.push(await run('export'), await run('check', '--deep'));
  runs.push(await run('backup', join(folder, 'other.db')));
  await startService();
  await services[0]?.end();
  for (let time = 0; time < 3; time++) runs.push(await run('restore', backup));
  done.abort();
  await holding;

  // Longer than a service waits.
  const held = holdFor(2000);
  runs.push(await importPart(6));
  await held;

  expect(faultsOf(runs)).toEqual([]);
});

/** Has the file alone for some milliseconds, as a restore has it; if it can. */
async function holdFor(time: number): Promise<void> {
  const database = new DatabaseSync(store.file);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    await setTimeout(time);
  } catch {
    // Another one uses it.
  }
  database.close();
}
