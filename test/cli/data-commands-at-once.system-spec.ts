/** Runs commands and services on one SQLite file at the same time. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { createRequest, Load } from '../support/load';
import { plantStore } from '../support/plant-store';
import type { RunResult } from '../support/run';
import { useServiceHome } from '../support/service-process';
import { checkIntegrity } from '../support/sqlite';

const PLANTS_PER_IMPORT = 2000;

const home = useServiceHome();

const run = (args: string[], input = ''): Promise<RunResult> =>
  plantStore(args, { DATABASE_URL: `sqlite:${home.file}` }, { input });

/** Imports plants with ids that no other part uses. */
function importPart(part: number): Promise<RunResult> {
  const ids = Array.from({ length: PLANTS_PER_IMPORT }, (_, at) => part * PLANTS_PER_IMPORT + at);
  return run(['import'], ids.map((id) => `{"id":${id},"name":"Fern"}\n`).join(''));
}

const findFailures = (runs: readonly RunResult[]): string[] =>
  runs.filter(({ code }) => code !== 0).map(({ stdout, stderr }) => stdout + stderr);

it('concurrent services and commands create one SQLite file and wait for each other', async () => {
  const starts = [home.start(), home.start()];
  const first = await Promise.all([0, 1].map(importPart));
  const copy = join(home.folder, 'copy.db');
  const runs = await Promise.all([
    importPart(2),
    run(['backup', copy]),
    run(['export', join(home.folder, 'plants.ndjson')]),
    run(['check', '--deep']),
  ]);
  const services = await Promise.all(starts);

  expect(findFailures([...first, ...runs])).toEqual([]);
  expect(checkIntegrity(copy)).toBe('ok');
  for (const service of services) expect(service.stdout).not.toMatch(/locked|cannot/);
  expect(home.plants()).toHaveLength(PLANTS_PER_IMPORT * 3);
});

it('commands wait while another process locks the SQLite file', async () => {
  await importPart(0);
  const lock = new DatabaseSync(home.file);
  lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  const runs = [importPart(1), run(['export']), run(['check', '--deep'])];
  runs.push(run(['backup', join(home.folder, 'copy.db')]));
  await setTimeout(2000);
  lock.close();

  expect(findFailures(await Promise.all(runs))).toEqual([]);
});

it('a service and commands start while another process keeps reading, and the running service stays ready', async () => {
  const service = await home.start();
  await importPart(0);
  const reader = new DatabaseSync(home.file, { readOnly: true });
  reader.exec('BEGIN; SELECT * FROM plants');
  await importPart(1);
  let isDone = false;
  let nextId = 1e9;
  const load = new Load({
    urls: [await service.url()],
    connections: 4,
    pauseMs: 5,
    next: () => (isDone ? undefined : createRequest(nextId++)),
  });

  const runs = [importPart(2), run(['export']), run(['backup', join(home.folder, 'copy.db')])];
  const [results] = await Promise.all([Promise.all(runs), home.start()]);
  isDone = true;
  await load.done;
  reader.close();

  expect(findFailures(results)).toEqual([]);
  expect(Object.keys(load.counts)).toEqual(['200']);
});
