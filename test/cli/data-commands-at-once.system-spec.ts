import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { openRepository } from '../../src/plants/persistence/stores';
import { plantStore } from '../support/plant-store';
import type { RunResult } from '../support/run';
import { useServiceHome } from '../support/service-process';
import { execute, checkIntegrity } from '../support/sqlite';

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

describe('a SQLite file that is locked repeatedly', () => {
  const done = new AbortController();
  let locking: Promise<void>;
  let backup: string;
  beforeEach(async () => {
    backup = join(home.folder, 'backup.db');
    await (await openRepository({ sqlite: home.file })).onApplicationShutdown();
    execute(home.file, `VACUUM INTO '${backup}'`);
    locking = lockRepeatedly();
  });
  afterEach(async () => {
    // The lock must be released before the folder is removed.
    done.abort();
    await locking;
  });

  async function lockRepeatedly(): Promise<void> {
    while (!done.signal.aborted) {
      await lockFor(100);
      await setTimeout(100);
    }
  }

  it('makes services and commands wait for the lock', async () => {
    const runs = [await importPart(1), await run(['export']), await run(['check', '--deep'])];
    runs.push(await run(['backup', join(home.folder, 'other.db')]));
    await (await home.start()).end();
    runs.push(await run(['restore', backup]));
    done.abort();
    await locking;

    // This is longer than a service waits for the lock.
    const locked = lockFor(2000);
    runs.push(await importPart(2));
    await locked;

    expect(findFailures(runs)).toEqual([]);
  });
});

/** Locks the file exclusively, as a restore does, unless it is in use. */
async function lockFor(durationMs: number): Promise<void> {
  const database = new DatabaseSync(home.file);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    await setTimeout(durationMs);
  } catch {
    // Another process uses the file.
  }
  database.close();
}
