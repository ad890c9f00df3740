import { once } from 'node:events';
import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { TOKEN } from '../support/application';
import { useFolder } from '../support/folder';
import { CommandProcess, plantStore, plantStoreOnTerminal } from '../support/plant-store';
import { PostgresServer } from '../support/postgres';
import { type Run, shell } from '../support/run';
import { ServiceProcess } from '../support/service-process';
import { execute, integrity, lockDatabase, readPlants } from '../support/sqlite';
import { PostgresStore, SqliteStore, stores, type TestStore } from '../support/stores';
import { until } from '../support/until';
import { brokenPromises, Writers } from '../support/writers';

const PROGRAM = join(__dirname, '../../dist/program/plant-store.js');

const LINES = [
  '{"id":-9223372036854775808,"name":"","tag":""}\n',
  '{"id":5,"name":"Fern","tag":"sh\\"ade,\\\\ \\u0001"}\n',
  '{"id":9007199254740993,"name":"Moss 🌿\\r\\n"}\n',
];

jest.setTimeout(120_000);

const folder = useFolder();
let service: ServiceProcess | undefined;
afterEach(async () => {
  await service?.end('SIGKILL');
  service = undefined;
});

const manyLines = (count: number, first = 1): string =>
  Array.from({ length: count }, (_, at) => `{"id":${first + at},"name":"Fern"}\n`).join('');

const counts = (stored: number, present = 0, conflicting = 0, invalid = 0): string =>
  `Stored ${stored}, already present ${present}, conflicting ${conflicting}, invalid ${invalid}.\n`;

/** Runs a command, given as one line, on a store. */
const run = (store: TestStore, command: string, input = ''): Promise<Run> =>
  plantStore(command.split(' '), { DATABASE_URL: store.url }, { input });

const done = (stderr: string): Run => ({ code: 0, stdout: '', stderr });
const failed = (stderr: string): Run => ({ code: 1, stdout: '', stderr });

describe.each(stores)('the commands for data, on %s', (name, startStore) => {
  let store: TestStore;
  let environment: NodeJS.ProcessEnv;
  beforeAll(async () => {
    store = await startStore();
    environment = { DATABASE_URL: store.url };
    await run(store, 'import');
  });
  beforeEach(() => store.removePlants());
  afterAll(() => store.remove());

  it('export what was imported', async () => {
    const imported = await run(store, 'import', LINES.toReversed().join(''));
    const exported = await run(store, 'export');

    expect(imported).toEqual(done(counts(3)));
    expect(exported).toEqual({ code: 0, stdout: LINES.join(''), stderr: 'Exported 3 plants.\n' });
  });

  it('write to a new file, and never over another one', async () => {
    await run(store, 'import', LINES.join(''));
    const file = join(folder, 'plants.ndjson');
    const first = await run(store, `export ${file}`);
    const second = await run(store, `export ${file}`);

    expect(first).toEqual(done('Exported 3 plants.\n'));
    expect(second).toEqual(failed(`${file} exists already. Name a new file.\n`));
    expect(readFileSync(file, 'utf8')).toBe(LINES.join(''));
    expect(readdirSync(folder)).toEqual(['plants.ndjson']);
  });

  it('report what is not stored, and store the rest', async () => {
    await run(store, 'import', '{"id":1,"name":"Fern"}\n');
    const input =
      '{"id":1,"name":"Fern"}\n{"id":1,"name":"Moss"}\n{"id":2}\n\n' +
      '{"id":3,"name":"Ginkgo"}\nnonsense\r\n{"id":3,"name":"Ginkgo","tag":""}';

    const outcome = await run(store, 'import', input);

    expect(outcome).toEqual(
      failed(
        'Line 2: A plant with this id exists already, with another name or tag.\n' +
          'Line 3: Not a NewPlant: name is required.\n' +
          'Line 6: Not JSON: Unexpected token \'o\', "nonsense" is not valid JSON\n' +
          'Line 7: A plant with this id exists already, with another name or tag.\n' +
          counts(1, 1, 2, 2),
      ),
    );
    expect(await store.plants()).toEqual([
      { id: 1n, name: 'Fern' },
      { id: 3n, name: 'Ginkgo' },
    ]);
  });

  it('refuse lines longer than BODY_LIMIT', async () => {
    const outcome = await plantStore(
      ['import'],
      { ...environment, BODY_LIMIT: '22' },
      { input: '{"id":1,"name":"Fern"}\n{"id":2,"name":"Ferns"}\n' },
    );

    const report = 'Line 2: It is longer than 22 bytes (BODY_LIMIT).\n';
    expect(outcome).toEqual(failed(report + counts(1, 0, 0, 1)));
  });

  it('resume an import that was killed, and store each plant once', async () => {
    const input = manyLines(30_000);
    const command = new CommandProcess(['import'], environment);
    command.child.stdin?.write(input.slice(0, input.length / 2));
    await until(async () => (await store.plants()).length > 0, 60_000);
    command.child.kill('SIGKILL');
    await command.ended;
    const stored = (await store.plants()).length;
    const again = await run(store, 'import', input);
    const exported = await run(store, 'export');

    expect(again).toEqual(done(counts(30_000 - stored, stored)));
    expect(exported.stdout).toBe(input);
  });

  it('end an import in order on SIGINT, and resume it when it is run again', async () => {
    const input = manyLines(30_000);
    const command = new CommandProcess(['import'], environment);
    command.child.stdin?.write(input.slice(0, input.length / 2));
    await until(async () => (await store.plants()).length > 0, 60_000);
    command.child.kill('SIGINT');
    const { code, stderr } = await command.ended;
    const stored = (await store.plants()).length;
    const again = await run(store, 'import', input);
    const exported = await run(store, 'export');

    expect(code).toBe(1);
    expect(stderr).toBe(`${counts(stored)}Interrupted.\n`);
    expect(again).toEqual(done(counts(30_000 - stored, stored)));
    expect(exported.stdout).toBe(input);
  });

  it('leave nothing behind when an export is interrupted, or its reader has gone', async () => {
    await run(store, 'import', manyLines(20_000));
    const head = await shell(`"${process.execPath}" "${PROGRAM}" export | head -n 1`, {
      env: { ...process.env, ...environment },
    });
    // Its standard output is never read, so that it is in the middle when the signal comes.
    const piped = new CommandProcess(['export'], environment);
    piped.child.stdout?.pause();
    await once(piped.child.stdout ?? piped.child, 'readable');
    piped.child.kill('SIGINT');
    piped.child.stdout?.resume();
    const interrupted = await piped.ended;

    expect(head).toEqual({ code: 0, stdout: '{"id":1,"name":"Fern"}\n', stderr: '' });
    expect([interrupted.code, interrupted.stderr]).toEqual([1, 'Interrupted.\n']);
  });

  it('make a service refuse no creation while they import', async () => {
    service = await ServiceProcess.start(folder, environment);
    const writers = new Writers([await service.url()], 16);
    const outcome = await run(store, 'import', manyLines(40_000, -40_000));
    await writers.stop();
    await service.end();

    expect(outcome.code).toBe(0);
    // A line before it says how far it is if it takes longer than ten seconds.
    expect(outcome.stderr.endsWith(counts(40_000))).toBe(true);
    expect(writers.those('unknown')).toEqual([]);
    expect(brokenPromises(writers.creations, await store.plants()).lost).toEqual([]);
    expect(service.stdout).not.toMatch(/locked|"level":[56]0/);
  });

  it('show how far they are on a terminal', async () => {
    const file = join(folder, 'many.ndjson');
    writeFileSync(file, manyLines(60_000));

    const { code, output } = await plantStoreOnTerminal(['import', file], environment);

    expect(code).toBe(0);
    expect(output).toMatch(/\d,\d{3} plants, [\d,]+\/s/);
    expect(output).toContain('\u001b[2K');
    expect(output.endsWith(counts(60_000).replace('\n', '\r\n'))).toBe(true);
  });

  it('check what the environment names, without a secret', async () => {
    const outcome = await plantStore(['check'], {
      ...environment,
      AUTH_TOKENS: TOKEN,
      AUTH_ISSUER: 'http://127.0.0.1:9',
      AUTH_AUDIENCE: 'plants',
    });

    const [file] = /(?<=sqlite:).*/.exec(store.url) ?? [];
    const lines = outcome.stdout.split('\n');
    expect(lines[0]).toBe('ok      settings: all variables are valid');
    const described =
      name === 'SQLite'
        ? `SQLite file ${String(file)}, schema version `
        : 'PostgreSQL at .*, the store [-0-9a-f]{36}';
    expect(lines[1]).toMatch(new RegExp(`^ok {6}store: ${described}`));
    expect(lines.slice(2)).toEqual([
      'ok      tokens: 1 in AUTH_TOKENS',
      expect.stringMatching(
        /^FAILED {2}issuer: The keys of http:\/\/127\.0\.0\.1:9 are not available: /,
      ),
      '',
    ]);
    expect([outcome.code, outcome.stderr]).toEqual([1, 'One check failed.\n']);
    expect(outcome.stdout).not.toContain(TOKEN);
  });
});

describe('moving to the other database', () => {
  it('keeps every byte, and brings it back', async () => {
    const sqlite = new SqliteStore();
    const back = new SqliteStore();
    const postgres = await PostgresStore.start();
    const texts = ['\\', '"', '\\N', '\t', '\n', '\r', '\v', '\x01', '\x7f', '\u2028', '🌿', ''];
    const plants = texts.flatMap((name) => texts.map((tag) => ({ name, tag })));
    const lines = plants.map((each, at) => `{"id":${10 + at},${JSON.stringify(each).slice(1)}\n`);
    const input = [...LINES, ...lines].join('');
    const pipe = (from: TestStore, to: TestStore) =>
      shell(
        `DATABASE_URL='${from.url}' "${process.execPath}" "${PROGRAM}" export |
         DATABASE_URL='${to.url}' "${process.execPath}" "${PROGRAM}" import`,
      );

    await run(sqlite, 'import', input);
    const there = await pipe(sqlite, postgres);
    const andBack = await pipe(postgres, back);
    const all = [sqlite, postgres, back];
    const files = await Promise.all(all.map((store) => run(store, 'export')));
    const expected = sqlite.plants();
    const moved = await postgres.plants();
    for (const store of all) await store.remove();

    expect([there.code, andBack.code]).toEqual([0, 0]);
    expect(expected).toHaveLength(LINES.length + lines.length);
    expect(moved).toEqual(expected);
    expect(files[1]?.stdout).toBe(files[0]?.stdout);
    expect(files[2]?.stdout).toBe(files[0]?.stdout);
  });
});

describe('check', () => {
  it('changes nothing in a PostgreSQL database that has no store yet', async () => {
    const server = await PostgresServer.start();

    const { stdout } = await plantStore(['check'], {
      DATABASE_URL: server.url(),
      AUTH_TOKENS: TOKEN,
    });

    expect(stdout).toContain('which has no table plants: the service will create it');
    const tables = "SELECT FROM pg_class WHERE relname LIKE 'plants%'";
    expect(await server.execute(tables)).toEqual([]);
    await server.remove();
  });
});

describe('backup and restore', () => {
  let store: SqliteStore;
  let environment: NodeJS.ProcessEnv;
  beforeEach(() => {
    store = new SqliteStore();
    environment = { DATABASE_URL: store.url };
  });
  afterEach(() => {
    store.remove();
  });

  it('copy the store of a busy service, and give it back', async () => {
    service = await ServiceProcess.start(folder, environment);
    const writers = new Writers([await service.url()], 16);
    await until(() => writers.those('acknowledged').length > 500, 60_000);
    const before = [...writers.those('acknowledged')];
    const copy = join(folder, 'copy.db');
    const backup = await run(store, `backup ${copy}`);
    const inUse = await run(store, `restore ${copy}`);
    await writers.stop();
    await service.end();
    const later = store.plants().length;
    const restored = await run(store, `restore ${copy}`);

    expect(backup).toEqual(done(`Backed up ${store.file} to ${copy}.\n`));
    expect(inUse).toEqual(failed(`${store.file} is in use: stop the service first.\n`));
    expect(integrity(copy)).toBe('ok');
    expect(brokenPromises(before, readPlants(copy)).lost).toEqual([]);
    expect(restored.code).toBe(0);
    expect(restored.stderr).toMatch(
      `Restored ${store.file} from ${copy}.\nThe old file is now ${store.file}.before-`,
    );
    expect(store.plants()).toEqual(readPlants(copy));
    const [kept = ''] = readdirSync(store.folder).filter((file) => file.includes('before'));
    expect(readPlants(join(store.folder, kept))).toHaveLength(later);

    service = await ServiceProcess.start(folder, environment);
    const [first] = before;
    const response = await service.post(JSON.stringify({ id: first?.id, name: 'other' }));
    expect(await response.json()).toMatchObject({ error: 40003 });
  });

  it('leave no file under the final name when they are killed, and none at all on SIGINT', async () => {
    await run(store, 'import');
    execute(
      store.file,
      `INSERT INTO plants (id, name) WITH RECURSIVE ids(id) AS (VALUES (1) UNION ALL
       SELECT id + 1 FROM ids WHERE id < 500000) SELECT id, printf('%0100d', id) FROM ids`,
    );
    const copy = join(folder, 'copy.db');
    const interrupt = async (signal: NodeJS.Signals): Promise<[number, string, string[]]> => {
      for (;;) {
        const command = new CommandProcess(['backup', copy], environment);
        await until(() => readdirSync(folder).length > 0, 60_000);
        command.child.kill(signal);
        const { code, stderr } = await command.ended;
        if (code !== 0) return [code, stderr, readdirSync(folder)];
        // This process was held up, and the copy was there before the signal.
        rmSync(copy);
      }
    };

    const interrupted = await interrupt('SIGINT');
    await interrupt('SIGKILL');

    expect(interrupted).toEqual([1, 'Interrupted.\n', []]);
    expect(existsSync(copy)).toBe(false);
  });

  it('refuse a file that is not a whole store, and leave the store as it was', async () => {
    await run(store, 'import', LINES.join(''));
    const copy = join(folder, 'copy.db');
    await run(store, `backup ${copy}`);
    const bytes = readFileSync(copy);
    bytes.fill(0xff, 4096 + 8, 4096 + 200);
    writeFileSync(join(folder, 'damaged.db'), bytes);
    writeFileSync(join(folder, 'text.db'), 'not a database, by any means '.repeat(50));

    const again = await run(store, `backup ${copy}`);
    const damaged = await run(store, `restore ${folder}/damaged.db`);
    const text = await run(store, `restore ${folder}/text.db`);
    const checked = await plantStore(['check', '--deep'], {
      DATABASE_URL: `sqlite:${join(folder, 'damaged.db')}`,
    });

    expect(again).toEqual(failed(`${copy} exists already. Name a new file.\n`));
    expect(damaged).toEqual(failed(expect.stringMatching(/is damaged: /) as string));
    expect([checked.code, checked.stderr]).toEqual([1, 'One check failed.\n']);
    expect(checked.stdout).toMatch(/^FAILED {2}plants: .* is damaged: /m);
    const reason = /is not a store: file is not a database\.\n$/;
    expect(text).toEqual(failed(expect.stringMatching(reason) as string));
    expect(store.plants()).toHaveLength(3);
    expect(readdirSync(store.folder).filter((name) => /part|before/.test(name))).toEqual([]);
  });

  it('restore over a file that is no database, and keep that file and its log', async () => {
    const store = new SqliteStore();
    const copy = join(folder, 'copy-for-garbage.db');
    await run(store, 'import', LINES[1]);
    await run(store, `backup ${copy}`);
    writeFileSync(store.file, 'garbage');
    writeFileSync(`${store.file}-wal`, 'its log');

    const restored = await run(store, `restore ${copy}`);

    expect(restored.code).toBe(0);
    const [, former = ''] = /The old file is now (.*)\.\n/.exec(restored.stderr) ?? [];
    expect([readFileSync(former, 'utf8'), readFileSync(`${former}-wal`, 'utf8')]).toEqual([
      'garbage',
      'its log',
    ]);
    expect(readPlants(store.file)).toHaveLength(1);
    store.remove();
  });

  it('restore the file that a symbolic link names', async () => {
    await run(store, 'import', LINES.join(''));
    const copy = join(folder, 'copy.db');
    await run(store, `backup ${copy}`);
    const link = join(folder, 'link.db');
    symlinkSync(store.file, link);

    const restored = await plantStore(['restore', copy], { DATABASE_URL: `sqlite:${link}` });

    expect(restored.stderr).toMatch(`Restored ${store.file} from ${copy}.\n`);
    expect(readlinkSync(link)).toBe(store.file);
    expect(readdirSync(folder).sort()).toEqual(['copy.db', 'link.db']);
  });

  it('refuse to restore the store onto itself, and a link to no file', async () => {
    await run(store, 'import', LINES.join(''));
    const link = join(folder, 'link.db');
    symlinkSync(store.file, link);
    const dangling = join(folder, 'dangling.db');
    symlinkSync(join(folder, 'nothing.db'), dangling);

    const onto = await run(store, `restore ${link}`);
    const toNothing = await plantStore(['restore', store.file], {
      DATABASE_URL: `sqlite:${dangling}`,
    });

    const advice = 'Name a file that "plant-store backup" has made.';
    expect(onto).toEqual({
      ...done(`${link} is the store itself. ${advice}\n`),
      code: 2,
    });
    expect(toNothing).toEqual(
      failed(`${dangling} is a symbolic link to a file that does not exist.\n`),
    );
    expect(store.plants()).toHaveLength(3);
  });

  it.each([
    ['restore none.db', 'none.db does not exist. Name a file that "plant-store backup" has made.'],
    ['restore /dev', '/dev is a directory. Name a file that "plant-store backup" has made.'],
    ['import none', 'none does not exist. Name a file, or pipe it to the standard input.'],
    ['backup copy.db', 'FOLDER/plants.db does not exist. Set DATABASE_URL to the store to copy.'],
    ['export /no/x', 'There is no directory /no. Name a file in one that exists.'],
    ['export', 'FOLDER/plants.db does not exist. Set DATABASE_URL to a store that exists.'],
  ])('%s says which file is missing, and what to do', async (command, sentence) => {
    expect(await run(store, command)).toEqual(
      failed(`${sentence.replace('FOLDER', store.folder)}\n`),
    );
    expect(readdirSync(store.folder)).toEqual([]);
  });

  it.each(['serve', 'import', 'check'])(
    '%s names the file where a directory should be',
    async (command) => {
      writeFileSync(join(folder, 'plain'), '');
      const { code, stdout, stderr } = await plantStore([command], {
        DATABASE_URL: `sqlite:${folder}/plain/data/plants.db`,
      });

      expect(code).toBe(1);
      expect(stdout + stderr).toContain(
        `DATABASE_URL must not name a file below ${folder}/plain, which is not a directory`,
      );
    },
  );

  it.each([
    ['backup', 'pg_dump --format=custom --file=FILE "$DATABASE_URL"'],
    [
      'restore',
      'pg_restore --clean --if-exists --single-transaction --dbname="$DATABASE_URL" FILE',
    ],
  ])('%s names the program for PostgreSQL', async (command, line) => {
    const { code, stdout, stderr } = await plantStore([command, 'FILE'], {
      DATABASE_URL: 'postgres://user:secret@127.0.0.1:9/plants',
    });

    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(`:\n  ${line}\n`);
    expect(stderr).not.toContain('secret');
  });
});

it('import goes on when PostgreSQL is back, and ends with what it says when that is refused', async () => {
  const server = await PostgresServer.start();
  const environment = { DATABASE_URL: server.url() };
  const command = new CommandProcess(['import'], environment);
  command.child.stdin?.write(manyLines(2000));
  await until(async () => (await server.plants().catch(() => [])).length > 0, 60_000);
  await server.stop();
  command.child.stdin?.end(manyLines(2000, 2001));
  await until(() => command.stderr.includes('Trying again for up to a minute'), 60_000);
  await server.start();
  const { code, stderr } = await command.ended;
  const stored = await server.plants();
  await server.stop();
  const refused = await plantStore(['import'], environment, { input: manyLines(1) });
  await server.remove();

  expect([code, stored.length]).toEqual([0, 4000]);
  expect(stderr).toMatch(/Stored \d+, already present \d+, conflicting 0, invalid 0\.\n$/);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/^The database cannot be used: PostgreSQL at .* \(ECONNREFUSED\)/);
});

describe('beside a service', () => {
  let store: SqliteStore;
  let service: ServiceProcess;
  beforeEach(async () => {
    store = new SqliteStore();
    service = await ServiceProcess.start(folder, { DATABASE_URL: store.url });
  });
  afterEach(async () => {
    await service.end('SIGKILL');
    store.remove();
  });

  it('health says whether the service is live and ready', async () => {
    const { port } = await service.url();
    const ready = await plantStore(['health', '--ready'], { PORT: port });
    const lock = lockDatabase(store.file);
    await service.post('{"id":1,"name":"x"}');
    const live = await plantStore(['health'], { PORT: port, HOST: '0.0.0.0' });
    const unready = await plantStore(['health', '--ready'], { PORT: port });
    lock.close();
    await service.end('SIGKILL');
    const gone = await plantStore(['health'], { PORT: port });

    expect(live).toEqual({ code: 0, stdout: 'live\n', stderr: '' });
    expect(ready).toEqual({ code: 0, stdout: 'ready\n', stderr: '' });
    expect(unready).toEqual(failed('The service is not ready: it answered with status 503.\n'));
    expect(gone).toEqual(
      failed(`The service at 127.0.0.1 port ${port} does not answer: ECONNREFUSED.\n`),
    );
  });

  it('health knows TLS', async () => {
    const tls = {
      TLS_CERT: join(__dirname, '../support/tls/server.crt'),
      TLS_KEY: join(__dirname, '../support/tls/server.key'),
    };
    await service.end();
    service = await ServiceProcess.start(folder, { DATABASE_URL: store.url, ...tls });
    const { port } = await service.url();
    const outcome = await plantStore(['health'], { PORT: port, ...tls });

    expect(outcome).toEqual({ code: 0, stdout: 'live\n', stderr: '' });
  });
});
