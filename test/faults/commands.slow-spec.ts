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
import { printFigures, quantile } from '../support/figures';
import { makeFolder, removeFolder } from '../support/folder';
import { creation, putLoad } from '../support/load';
import { CommandProcess, plantStore } from '../support/plant-store';
import type { Run } from '../support/run';
import { ServiceProcess } from '../support/service-process';
import { SmallDisk } from '../support/small-disk';
import { readPlants } from '../support/sqlite';
import { SqliteStore, stores, type TestStore } from '../support/stores';

let folder: string;
beforeEach(() => {
  folder = makeFolder();
});
afterEach(() => {
  removeFolder(folder);
});

/** Lines for plants with negative ids, which no creation here has. */
function lines(count: number, length = 10): string {
  return Array.from(
    { length: count },
    (_, at) => `{"id":${-1 - at},"name":"${String(at).padEnd(length, '.')}"}\n`,
  ).join('');
}

/** Creates plants until the work is done, and says how that went. */
async function createDuring(
  url: URL,
  work: () => Promise<unknown>,
): Promise<{ latencies: number[]; refusals: string[] }> {
  const latencies: number[] = [];
  const refusals: string[] = [];
  let isDone = false;
  const load = putLoad({
    url,
    connections: 16,
    next: () => (isDone ? undefined : creation(nextId++)),
    onAnswer: (_id, { status, body, latency }) => {
      latencies.push(latency);
      if (status !== 200) refusals.push(body);
    },
  });
  await work();
  isDone = true;
  await load;
  return { latencies, refusals };
}
let nextId = 1;

describe.each(stores)('import into %s beside a service', (name, startStore) => {
  let store: TestStore;
  let service: ServiceProcess;
  beforeEach(async () => {
    store = await startStore();
    service = await ServiceProcess.start(folder, { DATABASE_URL: store.url });
  });
  afterEach(async () => {
    service.kill('SIGKILL');
    await service.ended;
    await store.remove();
  });

  it('refuses no creation', async () => {
    const file = join(folder, 'plants.ndjson');
    writeFileSync(file, lines(200_000));
    let outcome: Run | undefined;
    const { latencies, refusals } = await createDuring(await service.url(), async () => {
      outcome = await plantStore(['import', file], { DATABASE_URL: store.url });
    });

    printFigures(`import into ${name} beside a service`, {
      'p99 of creations, ms': quantile(latencies, 0.99).toFixed(2),
      creations: latencies.length,
    });
    expect(outcome?.code).toBe(0);
    expect(refusals).toEqual([]);
  }, 240_000);
});

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

  const filesOnDisk = () => readdirSync(disk.path).sort();

  it('export and backup say so, and leave no file', async () => {
    await plantStore(['import'], { DATABASE_URL: store.url }, { input: LINES });

    const outcomes = {
      export: await run(['export', '--output', join(small, 'plants.ndjson')], store.url),
      backup: await run(['backup', join(small, 'copy.db')], store.url),
    };

    expect(outcomes.export).toMatchObject({ code: 1, stdout: '' });
    expect(outcomes.export.stderr).toMatch(/^ENOSPC: no space left on device.*\n$/);
    expect(outcomes.backup).toMatchObject({ code: 1, stdout: '' });
    expect(outcomes.backup.stderr).toMatch(/cannot be copied: database or disk is full\.\n$/);
    expect(filesOnDisk()).toEqual([]);
  });

  it('restore says so, and leaves the store as it was', async () => {
    await plantStore(['import'], { DATABASE_URL: store.url }, { input: LINES });
    const url = `sqlite:${join(small, 'plants.db')}`;
    await run(['import'], url, '{"id":1,"name":"Fern"}\n');

    const outcome = await run(['restore', store.file], url);

    expect(outcome).toMatchObject({ code: 1, stdout: '' });
    expect(outcome.stderr).toMatch(/^ENOSPC: no space left on device.*\n$/);
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

    expect(outcome).toMatchObject({ code: 1, stdout: '' });
    expect(outcome.stderr).toMatch(/database or disk is full\n$/);
    expect(kept).toBeGreaterThanOrEqual(Number(stored));
    expect(again.stderr).toBe(
      `Stored ${400 - kept}, already present ${kept}, conflicting 0, invalid 0.\n`,
    );
  });

  it('import leaves no half of a file of rejects', async () => {
    const input = LINES.replaceAll('"name":', '"title":');
    const args = ['import', '--rejects', join(small, 'rejects.ndjson')];

    const outcome = await run(args, store.url, input);

    expect(outcome).toMatchObject({ code: 1, stdout: '' });
    expect(outcome.stderr).toMatch(/\nENOSPC: no space left on device.*\n$/);
    expect(filesOnDisk()).toEqual([]);
  });
});

describe('SIGINT at any moment', () => {
  const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
  const ROUNDS = 12;

  it.each(['export', 'import', 'backup', 'restore', 'check'])(
    'ends %s in order, or comes too late',
    async (command) => {
      const store = new SqliteStore();
      const environment = { DATABASE_URL: store.url };
      const input = join(folder, 'input.ndjson');
      writeFileSync(input, lines(60_000, 40));
      await plantStore(['import', input], environment);
      const backup = join(folder, 'backup.db');
      await plantStore(['backup', backup], environment);
      const target = join(folder, 'target');
      const commands: Record<string, string[]> = {
        export: ['export', '--output', target],
        import: ['import', input],
        backup: ['backup', target],
        restore: ['restore', backup],
        check: ['check', '--deep'],
      };

      const countPlants = (file: string): number =>
        command === 'backup'
          ? readPlants(file).length
          : readFileSync(file, 'utf8').split('\n').length - 1;

      const ends: Record<string, number> = {};
      const whole: number[] = [];
      const before = performance.now();
      for (let round = 0; round <= ROUNDS; round++) {
        const url = command === 'import' ? `sqlite:${join(folder, `${round}.db`)}` : store.url;
        const file = `${target}-${round}`;
        const args = (commands[command] ?? []).map((arg) => (arg === target ? file : arg));
        const duration = performance.now() - before;
        const child = new CommandProcess(args, { DATABASE_URL: url });
        // The first runs to its end, and tells how long that takes.
        if (round > 0) {
          await setTimeout(((seed % 97) / 97 + round - 1) * (longest / ROUNDS));
          child.child.kill('SIGINT');
        }
        const { code, signal, stderr } = await child.ended;
        if (round === 0) longest = performance.now() - before - duration;

        // Node.js itself ends before the program has begun.
        const end = signal ?? (code === 0 ? 'done' : stderr.split('\n').at(-2));
        ends[String(end)] = (ends[String(end)] ?? 0) + 1;
        expect(['done', 'Interrupted.', 'SIGINT']).toContain(end);
        expect(existsSync(file)).toBe(code === 0 && args.includes(file));
        if (existsSync(file)) whole.push(countPlants(file));
        const left = [...readdirSync(folder), ...readdirSync(store.folder)];
        expect(left.filter((each) => each.includes('.part'))).toEqual([]);
        expect(readPlants(store.file)).toHaveLength(60_000);
      }

      expect(whole.filter((count) => count !== 60_000)).toEqual([]);
      printFigures(`SIGINT during ${command} (SEED=${seed})`, ends);
      store.remove();
    },
    240_000,
  );
  let longest = 0;
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
    expect(stderr.endsWith('Stored 120000, already present 0, conflicting 0, invalid 0.\n')).toBe(
      true,
    );
    store.remove();
  }, 120_000);
});
