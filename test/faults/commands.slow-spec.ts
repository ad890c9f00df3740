/** Shows that commands leave no half file on a full disk. Needs Linux with user namespaces, and takes a minute. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../support/folder';
import { CLI_PATH, plantStore } from '../support/plant-store';
import { type RunResult, shell } from '../support/run';
import { SmallDisk } from '../support/small-disk';
import { SqliteStore } from '../support/stores';
import { createFaultWrapper } from '../support/strace';

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

  const outcomes = { 'plants.db': restored, 'plants.ndjson': exported, 'copy.db': backup };
  for (const [name, { code, stderr }] of Object.entries(outcomes)) {
    expect([code, stderr]).toEqual([1, expect.stringMatching(/cannot be written: ENOSPC: /)]);
    // The name of the file, or that of its draft.
    expect(stderr.startsWith(small)).toBe(true);
    expect(stderr).toContain(name);
  }
  expect(files).toEqual(['plants.db']);
  expect(left.stdout).toBe('{"id":1,"name":"Fern"}\n');
});

it.each([
  ['has no hard links', () => createFaultWrapper('link,linkat', 'error=EPERM')],
  ['cannot sync directories', () => createFaultWrapper('fsync', 'error=EINVAL', store.folder)],
])('export, backup and restore work on a file system that %s', async (_what, createWrapper) => {
  await plantStore(['import'], environment, { input: createLines(2, 10) });

  const runs: RunResult[] = [];
  for (const line of ['export a', 'backup b', 'restore b', 'backup b']) {
    const options = { wrapper: createWrapper(), cwd: store.folder };
    runs.push(await plantStore(line.split(' '), environment, options));
  }

  expect(runs.map(({ code }) => code)).toEqual([0, 0, 0, 1]);
  expect(runs.at(-1)?.stderr).toMatch(/b already exists\. Choose another file name\.\n$/);
  const names = readdirSync(store.folder).filter((name) => !/-(wal|shm)$/.test(name));
  const former = expect.stringMatching(/^plants\.db\.before-\d+$/) as string;
  expect(names).toEqual(['a', 'b', 'plants.db', former]);
  expect(store.plants()).toHaveLength(2);
});

it('import reports a line that is too long, and stores the lines before it', async () => {
  writeFileSync(join(folder, 'lines'), createLines(1250, 10));

  const { code, stderr } = await shell(
    `(cat lines; head -c 600M /dev/zero | tr '\\0' x) | "${process.execPath}" "${CLI_PATH}" import`,
    { cwd: folder, env: environment },
  );

  expect([code, stderr]).toEqual([
    1,
    'Stored 1250, already present 0, conflicting 0, invalid 0.\n' +
      'Line 1251 cannot be read: it is longer than 511 MiB.\n',
  ]);
  expect(store.plants()).toHaveLength(1250);
});
