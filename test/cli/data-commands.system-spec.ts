/** Runs `export` and `import` as processes, on SQLite and PostgreSQL. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseJson } from '../../src/plants/plant/json';
import type { Plant } from '../../src/plants/plant/plant';
import { errorNumbers } from '../support/error-bodies';
import { expectOutcomesMatch, Load } from '../support/load';
import { CommandProcess, plantStore, CLI_PATH } from '../support/plant-store';
import { createExamples } from '../support/plant-rules';
import { PostgresServer } from '../support/postgres';
import { type RunResult, shell } from '../support/run';
import { useServiceHome } from '../support/service-process';
import { stores, type TestStore } from '../support/stores';
import { until } from '../support/until';

/** A line for each valid plant of the contract, by its id, and a line for each invalid one. */
const VALID_LINES = new Map<bigint, string>();
const INVALID_LINES: string[] = [];
for (const { json, isValid } of createExamples()) {
  if (isValid) VALID_LINES.set((parseJson(json) as Plant).id, `${json}\n`);
  else INVALID_LINES.push(`${json}\n`);
}
/** In the order of ids. */
const LINES = Array.from(VALID_LINES)
  .sort(([a], [b]) => (a < b ? -1 : 1))
  .map(([, line]) => line);

const createLines = (count: number, first = 1, name = 'Fern'): string =>
  Array.from({ length: count }, (_, at) => `{"id":${first + at},"name":"${name}"}\n`).join('');

const formatCounts = (stored: number, present = 0, conflicting = 0, invalid = 0): string =>
  `Stored ${stored}, already present ${present}, conflicting ${conflicting}, invalid ${invalid}.\n`;

const succeeded = (stderr: string): RunResult => ({ code: 0, stdout: '', stderr });
const failed = (stderr: string): RunResult => ({ code: 1, stdout: '', stderr });

describe.each(stores)('export and import on %s', (_name, startStore) => {
  const home = useServiceHome();
  let store: TestStore;
  let environment: NodeJS.ProcessEnv;
  /** Runs a command line on the store. */
  const run = (command: string, input: string | Buffer = ''): Promise<RunResult> =>
    plantStore(command.split(' '), environment, { input });
  beforeAll(async () => {
    store = await startStore();
    environment = { DATABASE_URL: store.url };
    await run('import');
  });
  beforeEach(() => store.removePlants());
  afterAll(() => store.remove());

  it('keep every byte, and export the plants in id order', async () => {
    const imported = await run('import', LINES.toReversed().join(''));
    const exported = await run('export');
    const file = join(home.folder, 'plants.ndjson');
    const written = await run(`export ${file}`);

    expect(imported).toEqual(succeeded(formatCounts(LINES.length)));
    const report = `Exported ${LINES.length} plants.\n`;
    expect(written).toEqual(succeeded(report));
    expect(readFileSync(file, 'utf8')).toBe(exported.stdout);
    expect(exported).toEqual({ code: 0, stdout: LINES.join(''), stderr: report });
  });

  it('store no plant that the contract forbids', async () => {
    const { code, stderr } = await run('import', INVALID_LINES.join(''));

    expect([code, stderr.match(/^Line \d+: Not a NewPlant: /gm)?.length]).toEqual([
      1,
      INVALID_LINES.length,
    ]);
    expect(await store.plants()).toEqual([]);
  });

  it('report rejected lines and store the others', async () => {
    await run('import', '{"id":1,"name":"Fern"}\n');
    const input =
      '{"id":1,"name":"Fern"}\n{"id":1,"name":"Moss"}\n{"id":2}\n\n{"id":3,"name":"Ginkgo"}\n' +
      'nonsense\r\n{"id":3,"name":"Ginkgo","tag":""}\n"\xff"';

    const outcome = await run('import', Buffer.from(input, 'latin1'));

    expect(outcome).toEqual(
      failed(
        'Line 2: A plant with this id already exists, with other content.\n' +
          'Line 3: Not a NewPlant: name is required.\n' +
          'Line 6: Not JSON: Unexpected token \'o\', "nonsense" is not valid JSON\n' +
          'Line 7: A plant with this id already exists, with other content.\n' +
          'Line 8: Not JSON: it is not UTF-8.\n' +
          formatCounts(1, 1, 2, 3),
      ),
    );
    expect(await store.plants()).toEqual([
      { id: 1n, name: 'Fern' },
      { id: 3n, name: 'Ginkgo' },
    ]);
  });

  it('resume an import that was killed', async () => {
    const input = createLines(6000);
    const command = new CommandProcess(['import'], environment);
    command.child.stdin?.write(input.slice(0, input.length / 2));
    await until(async () => (await store.plants()).length > 0);
    await command.end('SIGKILL');
    const stored = (await store.plants()).length;
    const again = await run('import', input);

    expect(again).toEqual(succeeded(formatCounts(6000 - stored, stored)));
    expect(await store.plants()).toHaveLength(6000);
  });

  it('ends an export when its reader closes the pipe', async () => {
    const lines = createLines(50, 1, 'Fern'.padEnd(50_000));
    await run('import', lines);

    const head = await shell(`"${process.execPath}" "${CLI_PATH}" export | head -n 1`, {
      env: { ...process.env, ...environment },
    });

    expect(head).toEqual({ code: 0, stdout: lines.slice(0, lines.indexOf('\n') + 1), stderr: '' });
  });

  it('do not make a running service reject requests', async () => {
    const service = await home.start(environment);
    const load = Load.startCompeting([await service.url()], 16, { pause: 10 });
    const outcome = await run('import', createLines(10_000, -10_000));
    await load.stop();
    await service.end();

    expect(outcome).toEqual(succeeded(formatCounts(10_000)));
    expect(Object.keys(load.counts)).toEqual(['200', String(errorNumbers.idTaken)]);
    expectOutcomesMatch(load.creations, await store.plants());
    expect(service.stdout).not.toMatch(/locked|"level":[56]0/);
  });
});

it('import resumes when PostgreSQL is reachable again, and fails when PostgreSQL is unreachable at its start', async () => {
  const server = await PostgresServer.start();
  const environment = { DATABASE_URL: server.url() };
  const command = new CommandProcess(['import'], environment);
  command.child.stdin?.write(createLines(2000));
  await until(async () => (await server.plants().catch(() => [])).length > 0);
  await server.stop();
  command.child.stdin?.end(createLines(2000, 2001));
  await server.start();
  const { code, stderr } = await command.ended;
  const stored = await server.plants();
  await server.stop();
  const failedImport = await plantStore(['import'], environment, { input: createLines(1) });
  await server.remove();

  expect([code, stored.length]).toEqual([0, 4000]);
  expect(stderr).toMatch(/Stored \d+, already present \d+, conflicting 0, invalid 0\.\n$/);
  expect(failedImport.code).toBe(1);
  expect(failedImport.stderr).toMatch(
    /^The database cannot be used: PostgreSQL at .* ECONNREFUSED /,
  );
});
