import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { openRepository } from '../../src/plants/persistence/stores';
import { plantStore } from '../support/plant-store';
import type { Run } from '../support/run';
import { useServiceHome } from '../support/service-process';
import { execute, integrity } from '../support/sqlite';

const PLANTS = 2000;

const home = useServiceHome();

const run = (args: string[], input = ''): Promise<Run> =>
  plantStore(args, { DATABASE_URL: `sqlite:${home.file}` }, { input });

/** Imports some plants, with ids that no other part has. */
function importPart(part: number): Promise<Run> {
  const ids = Array.from({ length: PLANTS }, (_, at) => part * PLANTS + at);
  return run(['import'], ids.map((id) => `{"id":${id},"name":"Fern"}\n`).join(''));
}

const faultsOf = (runs: readonly Run[]): string[] =>
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

  expect(faultsOf([...first, ...runs])).toEqual([]);
  expect(integrity(copy)).toBe('ok');
  for (const service of services) expect(service.stdout).not.toMatch(/locked|cannot/);
  expect(home.plants()).toHaveLength(PLANTS * 3);
});

describe('a SQLite file that another program locks repeatedly', () => {
  const done = new AbortController();
  let holding: Promise<void>;
  let backup: string;
  beforeEach(async () => {
    backup = join(home.folder, 'backup.db');
    await (await openRepository({ sqlite: home.file })).onApplicationShutdown();
    execute(home.file, `VACUUM INTO '${backup}'`);
    holding = hold();
  });
  afterEach(async () => {
    // Before the folder is removed.
    done.abort();
    await holding;
  });

  async function hold(): Promise<void> {
    while (!done.signal.aborted) {
      await holdFor(100);
      await setTimeout(100);
    }
  }

  it('makes services and commands wait for the lock', async () => {
    const runs = [await importPart(1), await run(['export']), await run(['check', '--deep'])];
    runs.push(await run(['backup', join(home.folder, 'other.db')]));
    await (await home.start()).end();
    runs.push(await run(['restore', backup]));
    done.abort();
    await holding;

    // Longer than a service waits.
    const held = holdFor(2000);
    runs.push(await importPart(2));
    await held;

    expect(faultsOf(runs)).toEqual([]);
  });
});

/** Has the file alone for some milliseconds, as a restore has it; if it can. */
async function holdFor(time: number): Promise<void> {
  const database = new DatabaseSync(home.file);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    await setTimeout(time);
  } catch {
    // Another one uses it.
  }
  database.close();
}
