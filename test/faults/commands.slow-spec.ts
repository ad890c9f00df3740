import { randomInt } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { useFolder } from '../support/folder';
import { CommandProcess, plantStore } from '../support/plant-store';
import type { Run } from '../support/run';
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

/** Lines for plants. */
const lines = (count: number, length: number): string =>
  Array.from(
    { length: count },
    (_, at) => `{"id":${-1 - at},"name":"${String(at).padEnd(length, '.')}"}\n`,
  ).join('');

describe('on a full disk', () => {
  let disk: SmallDisk;
  let small: string;
  beforeEach(async () => {
    small = join(folder, 'small');
    mkdirSync(small);
    disk = await SmallDisk.mount(small, 2 ** 21);
  });
  afterEach(() => disk.unmount());

  const run = (args: string[], url = store.url, input = '') =>
    plantStore(args, { DATABASE_URL: url }, { wrapper: disk.wrapper, input });

  const failed = (stderr: RegExp): Run => ({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(stderr) as string,
  });

  it('export, backup and restore say so, leave no file, and the store as it was', async () => {
    await plantStore(['import'], environment, { input: lines(5000, 1000) });
    const url = `sqlite:${join(small, 'plants.db')}`;
    await run(['import'], url, '{"id":1,"name":"Fern"}\n');

    const restored = await run(['restore', store.file], url);
    const exported = await run(['export', join(small, 'plants.ndjson')]);
    const backup = await run(['backup', join(small, 'copy.db')]);
    const left = await run(['export'], url);

    expect(exported).toEqual(failed(/^ENOSPC: no space left on device.*\n$/));
    expect(backup).toEqual(failed(/cannot be copied: database or disk is full\.\n$/));
    expect(restored).toEqual(failed(/^ENOSPC: no space left on device.*\n$/));
    expect(readdirSync(disk.path)).toEqual(['plants.db']);
    expect(left.stdout).toBe('{"id":1,"name":"Fern"}\n');
  });

  it('import says so, keeps what it reports as stored, and is resumed', async () => {
    const url = `sqlite:${join(small, 'plants.db')}`;
    const input = lines(400, 1000);
    disk.fill(500_000);
    const outcome = await run(['import'], url, input);
    const [, stored] = /Stored (\d+), /.exec(outcome.stderr) ?? [0, 0];
    disk.release();
    // With its log, which a full disk keeps from being emptied.
    cpSync(disk.path, join(folder, 'copy'), { recursive: true });
    const kept = readPlants(join(folder, 'copy/plants.db')).length;
    const again = await run(['import'], url, input);

    expect(outcome).toEqual(failed(/database or disk is full\.\n$/));
    expect(kept).toBeGreaterThanOrEqual(Number(stored));
    expect(again.stderr).toMatch(`Stored ${400 - kept}, already present ${kept}, `);
  });
});

const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
describe(`SIGINT at any moment (SEED=${seed})`, () => {
  const ROUNDS = 12;

  it.each([
    ['export', 'TARGET'],
    ['import', 'input.ndjson'],
    ['backup', 'TARGET'],
    ['restore', 'backup.db'],
    ['check', '--deep'],
  ])('ends %s %s in order, or comes too late', async (command, argument) => {
    writeFileSync(join(folder, 'input.ndjson'), lines(60_000, 40));
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
      // The first runs to its end, and tells how long that takes.
      if (round > 0) {
        await setTimeout(((seed % 97) / 97 + round - 1) * (longest / ROUNDS));
        child.child.kill('SIGINT');
      }
      const { code, signal, stderr } = await child.ended;
      if (round === 0) longest = performance.now() - began;

      // Node.js itself ends before the program has begun, and once it has ended.
      const end = signal ?? (code === 0 ? 'done' : stderr.split('\n').at(-2));
      expect(['done', 'Interrupted.', 'SIGINT']).toContain(end);
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
