import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../support/folder';
import { plantStore } from '../support/plant-store';
import { SmallDisk } from '../support/small-disk';
import { SqliteStore } from '../support/stores';

const folder = useFolder();
let store: SqliteStore;
let environment: NodeJS.ProcessEnv;
beforeEach(() => {
  store = new SqliteStore();
  environment = { DATABASE_URL: store.url };
});
afterEach(() => {
  store.remove();
});

const FULL = /^ENOSPC: no space left on device|database or disk is full\.\n$/;

/** Creates the lines of an import file. */
const createLines = (count: number, length: number): string =>
  Array.from(
    { length: count },
    (_, at) => `{"id":${-1 - at},"name":"${String(at).padEnd(length, '.')}"}\n`,
  ).join('');

it('export, backup and restore report a full disk, leave no file behind, and leave the store unchanged', async () => {
  const small = join(folder, 'small');
  mkdirSync(small);
  const disk = await SmallDisk.mount(small, 2 ** 21);
  const run = (args: string[], url = store.url, input = '') =>
    plantStore(args, { DATABASE_URL: url }, { wrapper: disk.wrapper, input });
  await plantStore(['import'], environment, { input: createLines(5000, 1000) });
  const url = `sqlite:${join(small, 'plants.db')}`;
  await run(['import'], url, '{"id":1,"name":"Fern"}\n');

  const restored = await run(['restore', store.file], url);
  const exported = await run(['export', join(small, 'plants.ndjson')]);
  const backup = await run(['backup', join(small, 'copy.db')]);
  const left = await run(['export'], url);
  const files = readdirSync(disk.path);
  await disk.unmount();

  for (const { code, stderr } of [restored, exported, backup]) {
    expect([code, stderr]).toEqual([1, expect.stringMatching(FULL)]);
  }
  expect(files).toEqual(['plants.db']);
  expect(left.stdout).toBe('{"id":1,"name":"Fern"}\n');
});
