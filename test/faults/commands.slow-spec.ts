import { randomInt } from 'node:crypto';
import {
  copyFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { useFolder } from '../support/folder';
import { CommandProcess, plantStore } from '../support/plant-store';
import type { Run } from '../support/run';
import { SmallDisk } from '../support/small-disk';
import { readPlants } from '../support/sqlite';
import { SqliteStore } from '../support/stores';

const folder = useFolder();

/** Lines for plants. */
function lines(count: number, length = 10): string {
  return Array.from(
    { length: count },
    (_, at) => `{"id":${-1 - at},"name":"${String(at).padEnd(length, '.')}"}\n`,
  ).join('');
}

describe('on a full disk', () => {
  const LINES = lines(5000, 1000);
  let store: SqliteStore;
  let disk: SmallDisk;
  let small: string;
  beforeEach(async () => {
    store = new SqliteStore();
    small = join(folder, 'small');
    mkdirSync(small);
    disk = await SmallDisk.mount(small, 2 ** 21);
  });
  afterEach(async () => {
    await disk.unmount();
    store.remove();
  });

  async function run(args: string[], url: string, input = ''): Promise<Run> {
    const command = new CommandProcess(args, { DATABASE_URL: url }, { wrapper: disk.wrapper });
    command.child.stdin?.end(input);
    return command.ended;
  }

  function expectFailure(outcome: Run, stderr: RegExp): void {
    expect(outcome).toMatchObject({ code: 1, stdout: '' });
    expect(outcome.stderr).toMatch(stderr);
  }

  const filesOnDisk = () => readdirSync(disk.path).sort();

  it('export and backup say so, and leave no file', async () => {
    await plantStore(['import'], { DATABASE_URL: store.url }, { input: LINES });

    const exported = await run(['export', join(small, 'plants.ndjson')], store.url);
    const backup = await run(['backup', join(small, 'copy.db')], store.url);

    expectFailure(exported, /^ENOSPC: no space left on device.*\n$/);
    expectFailure(backup, /cannot be copied: database or disk is full\.\n$/);
    expect(filesOnDisk()).toEqual([]);
  });

  it('restore says so, and leaves the store as it was', async () => {
    await plantStore(['import'], { DATABASE_URL: store.url }, { input: LINES });
    const url = `sqlite:${join(small, 'plants.db')}`;
    await run(['import'], url, '{"id":1,"name":"Fern"}\n');

    const outcome = await run(['restore', store.file], url);

    expectFailure(outcome, /^ENOSPC: no space left on device.*\n$/);
    expect(filesOnDisk()).toEqual(['plants.db']);
    expect((await run(['export'], url)).stdout).toBe('{"id":1,"name":"Fern"}\n');
  });

  it('import says so, keeps what it reports as stored, and is resumed', async () => {
    const url = `sqlite:${join(small, 'plants.db')}`;
    const input = lines(400, 1000);
    disk.fill(500_000);
    const outcome = await run(['import'], url, input);
    const [, stored] = /Stored (\d+), /.exec(outcome.stderr) ?? [0, 0];
    disk.release();
    copyFileSync(join(disk.path, 'plants.db'), join(folder, 'copy.db'));
    const kept = readPlants(join(folder, 'copy.db')).length;
    const again = await run(['import'], url, input);

    expectFailure(outcome, /database or disk is full\.\n$/);
    expect(kept).toBeGreaterThanOrEqual(Number(stored));
    expect(again.stderr).toBe(
      `Stored ${400 - kept}, already present ${kept}, conflicting 0, invalid 0.\n`,
    );
    // It tries again for a minute.
  }, 240_000);
});

const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
describe(`SIGINT at any moment (SEED=${seed})`, () => {
  const ROUNDS = 12;

  it.each(['export', 'import', 'backup', 'restore', 'check'] as const)(
    'ends %s in order, or comes too late',
    async (command) => {
      const store = new SqliteStore();
      const environment = { DATABASE_URL: store.url };
      const input = join(folder, 'input.ndjson');
      writeFileSync(input, lines(60_000, 40));
      await plantStore(['import', input], environment);
      const backup = join(folder, 'backup.db');
      await plantStore(['backup', backup], environment);
      const argsFor = (target: string): string[] =>
        ({
          export: [target],
          import: [input],
          backup: [target],
          restore: [backup],
          check: ['--deep'],
        })[command];

      const countPlants = (file: string): number =>
        command === 'backup'
          ? readPlants(file).length
          : readFileSync(file, 'utf8').split('\n').length - 1;

      const whole: number[] = [];
      let longest = 0;
      for (let round = 0; round <= ROUNDS; round++) {
        const url = command === 'import' ? `sqlite:${join(folder, `${round}.db`)}` : store.url;
        const file = join(folder, `target-${round}`);
        const args = [command, ...argsFor(file)];
        const began = performance.now();
        const child = new CommandProcess(args, { DATABASE_URL: url });
        // The first runs to its end, and tells how long that takes.
        if (round > 0) {
          await setTimeout(((seed % 97) / 97 + round - 1) * (longest / ROUNDS));
          child.child.kill('SIGINT');
        }
        const { code, signal, stderr } = await child.ended;
        if (round === 0) longest = performance.now() - began;

        // Node.js itself ends before the program has begun.
        const end = signal ?? (code === 0 ? 'done' : stderr.split('\n').at(-2));
        expect(['done', 'Interrupted.', 'SIGINT']).toContain(end);
        expect(existsSync(file)).toBe(code === 0 && args.includes(file));
        if (existsSync(file)) whole.push(countPlants(file));
        const left = [...readdirSync(folder), ...readdirSync(store.folder)];
        expect(left.filter((each) => each.includes('.part'))).toEqual([]);
        expect(readPlants(store.file)).toHaveLength(60_000);
      }

      expect(whole.filter((count) => count !== 60_000)).toEqual([]);
      store.remove();
    },
    240_000,
  );
});

describe('off a terminal', () => {
  it('progress is one line every ten seconds', async () => {
    const store = new SqliteStore();
    const file = join(folder, 'plants.ndjson');
    writeFileSync(file, lines(120_000, 80));
    const command = new CommandProcess(['import'], { DATABASE_URL: store.url });
    const began = performance.now();
    // Some 11 MB in pieces of 64 KiB, slowed down to some 25 seconds.
    for await (const chunk of createReadStream(file)) {
      command.child.stdin?.write(chunk);
      await setTimeout(150);
    }
    command.child.stdin?.end();
    const { stderr } = await command.ended;
    const seconds = (performance.now() - began) / 1000;

    const progress = stderr.split('\n').filter((line) => line.includes('/s'));
    // A line comes with the first batch after ten seconds, whenever that is.
    expect(progress.length).toBeGreaterThanOrEqual(1);
    expect(progress.length).toBeLessThanOrEqual(seconds / 10);
    for (const line of progress) expect(line).toMatch(/^[\d,]+ plants, [\d,]+\/s$/);
    expect(stderr).toMatch(/Stored 120000, already present 0, conflicting 0, invalid 0\.\n$/);
    store.remove();
  }, 120_000);
});
