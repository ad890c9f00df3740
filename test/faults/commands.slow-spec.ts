import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { useFolder } from '../support/folder';
import { CommandProcess, plantStore } from '../support/plant-store';
import { SmallDisk } from '../support/small-disk';
import { readPlants } from '../support/sqlite';
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

const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
describe(`SIGINT at a random time (SEED=${seed})`, () => {
  const ROUNDS = 12;

  it.each([
    ['export', 'TARGET'],
    ['import', 'input.ndjson'],
    ['backup', 'TARGET'],
    ['restore', 'backup.db'],
    ['check', '--deep'],
  ])('stops %s %s cleanly, or arrives too late', async (command, argument) => {
    writeFileSync(join(folder, 'input.ndjson'), createLines(60_000, 40));
    await plantStore(['import', 'input.ndjson'], environment, { cwd: folder });
    await plantStore(['backup', 'backup.db'], environment, { cwd: folder });

    const countPlants = (file: string): number =>
      command === 'backup'
        ? readPlants(file).length
        : readFileSync(file, 'utf8').split('\n').length - 1;
    const whole: number[] = [];
    let longest = 0;
    for (let round = 0; round <= ROUNDS; round++) {
      const url = command === 'import' ? `sqlite:${join(folder, `${round}.db`)}` : store.url;
      const file = join(folder, `target-${round}`);
      const args = [command, argument.replace('TARGET', file)];
      const began = performance.now();
      const child = new CommandProcess(args, { DATABASE_URL: url }, { cwd: folder });
      // The first round is not interrupted. It measures how long the command takes.
      if (round > 0) {
        await setTimeout(((seed % 97) / 97 + round - 1) * (longest / ROUNDS));
        child.child.kill('SIGINT');
      }
      const { code, signal, stderr } = await child.ended;
      if (round === 0) longest = performance.now() - began;

      expect(signal === 'SIGINT' || code === 0 || stderr).toBe(true);
      const isDone = code === 0 && argument === 'TARGET';
      expect(existsSync(file) || !isDone).toBe(true);
      if (existsSync(file)) whole.push(countPlants(file));
      const left = [...readdirSync(folder), ...readdirSync(store.folder)];
      expect(left.filter((each) => each.includes('.part'))).toEqual([]);
      expect(readPlants(store.file)).toHaveLength(60_000);
    }

    expect(whole.filter((count) => count !== 60_000)).toEqual([]);
  });
});
