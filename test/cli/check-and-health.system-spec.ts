/** Runs `check` and `health` as processes, on SQLite and PostgreSQL. Some tests need Linux. */
import { chmodSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generate } from 'selfsigned';
import { MIGRATIONS } from '../../src/plants/store/migrations';
import { openRepository } from '../../src/plants/store/stores';
import { createNewerBuild } from '../support/newer-build';
import { plantStore, CLI_PATH, WITHOUT_ROOT_ACCESS } from '../support/plant-store';
import { PostgresServer } from '../support/postgres';
import { describeOnLinux, type RunResult, run } from '../support/run';
import { useServiceHome } from '../support/service-process';
import { execute, lockDatabase } from '../support/sqlite';
import { stores, type TestStore } from '../support/stores';

const TOKEN = 'a-long-token-of-tests';
const home = useServiceHome();
const createStore = async () =>
  (await openRepository({ sqlite: home.file })).onApplicationShutdown();

describe.each(stores)('check of a store in %s', (_name, startStore) => {
  const ADD_SOIL = 'ALTER TABLE plants ADD COLUMN soil TEXT';
  const CURRENT = new RegExp(`^ok {6}store: .*, schema version ${MIGRATIONS.length}$`, 'm');

  let store: TestStore;
  let environment: NodeJS.ProcessEnv;
  beforeEach(async () => {
    store = await startStore();
    environment = { DATABASE_URL: store.url, AUTH_TOKENS: TOKEN };
  });
  afterEach(() => store.remove());

  const importFern = (program = CLI_PATH) =>
    plantStore(['import'], environment, { input: '{"id":1,"name":"Fern"}', program });

  it.each([[['check']], [['check', '--deep']]])(
    'states that the service will create a missing store, and does not create it: %j',
    async (command) => {
      const first = await plantStore(command, environment);
      const second = await plantStore(command, environment);

      expect(first).toMatchObject({ code: 0 });
      expect(first.stdout).toMatch(/^ok {6}store: .*the service will create/m);
      expect(second.stdout).toBe(first.stdout);
    },
  );

  it.each([[['check']], [['check', '--deep']]])(
    'states the schema version, and leaves the plants as they are: %j',
    async (command) => {
      await importFern();

      const { code, stdout } = await plantStore(command, environment);

      expect(code).toBe(0);
      expect(stdout).toMatch(CURRENT);
      expect(await store.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
    },
  );

  it('states that a newer service will upgrade the store, and does not upgrade it', async () => {
    await importFern();
    const program = createNewerBuild({ sqlite: ADD_SOIL, postgres: ADD_SOIL });

    const newer = await plantStore(['check'], environment, { program });

    const upgrade = `schema version ${MIGRATIONS.length}, which the service will upgrade to ${MIGRATIONS.length + 1}\n`;
    expect([newer.code, newer.stdout]).toEqual([0, expect.stringContaining(upgrade)]);
    expect((await plantStore(['check'], environment)).stdout).toMatch(CURRENT);
  });

  it('fails for a store that a newer service has upgraded', async () => {
    await importFern(createNewerBuild({ sqlite: ADD_SOIL, postgres: ADD_SOIL }));

    const { code, stdout } = await plantStore(['check'], environment);

    expect(code).toBe(1);
    expect(stdout).toMatch(/^FAILED {2}store: .*this service knows versions up to/m);
  });
});

describe('check', () => {
  it('reports each part of the configuration as valid or invalid, without secrets', async () => {
    await createStore();
    const outcome = await plantStore(['check'], {
      DATABASE_URL: `sqlite:${home.file}`,
      AUTH_TOKENS: `${TOKEN},short`,
      AUTH_ISSUER: 'http://127.0.0.1:4',
      AUTH_AUDIENCE: 'plants',
    });

    expect(outcome.code).toBe(1);
    expect(outcome.stderr).toMatch(
      /^The token list has a token that can be guessed, .* \(token 2\).*\n$/,
    );
    const url = 'http://127.0.0.1:4/.well-known/openid-configuration';
    const issuer = `The keys of http://127.0.0.1:4 cannot be fetched: ${url} does not respond: connect `;
    expect(outcome.stdout.trim().split('\n')).toEqual([
      'ok      settings: all variables are valid',
      `ok      store: SQLite file ${home.file}, schema version ${MIGRATIONS.length}`,
      'ok      tokens: all tokens can be used',
      expect.stringMatching(`^FAILED  issuer: ${issuer}`) as string,
    ]);
  });

  describeOnLinux(() => {
    it.each([
      ['a directory that it cannot write', 'data', 'new.db', 0o500],
      ['a missing directory that it cannot create', 'data', 'new/new.db', 0o500],
      ['a directory that it cannot write, with a store', 'data', 'plants.db', 0o500],
      ['a store that it cannot write', 'data/plants.db', 'plants.db', 0o400],
    ])('fails for %s, like a start of the service', async (_what, restricted, file, mode) => {
      await createStore();
      chmodSync(join(home.folder, restricted), mode);
      const environment = { DATABASE_URL: `sqlite:data/${file}`, AUTH_TOKENS: TOKEN };
      const options = { cwd: home.folder, wrapper: WITHOUT_ROOT_ACCESS };

      const checked = await plantStore(['check'], environment, options);
      const started = await plantStore(['serve'], { ...environment, PORT: '0' }, options);

      expect([checked.code, checked.stderr]).toEqual([1, '']);
      expect(checked.stdout).toMatch(/^FAILED {2}store: .*EACCES/m);
      expect(started.code).toBe(1);
    });
  });

  it.each([
    [
      'whose trigger rejects every row',
      "CREATE TRIGGER t BEFORE INSERT ON plants BEGIN SELECT RAISE(ABORT, 'closed'); END",
      /: closed\.$/m,
    ],
    [
      'that has lost its key',
      'CREATE TABLE t AS SELECT * FROM plants; DROP TABLE plants; ALTER TABLE t RENAME TO plants',
      /: the column id of plants must be INTEGER PRIMARY KEY, but is INT\.$/m,
    ],
    [
      'that lacks a column',
      'ALTER TABLE plants DROP COLUMN tag',
      /: the column tag of plants must be TEXT, but is missing\.$/m,
    ],
  ])('fails for a store %s, like a start of the service', async (_what, sql, reason) => {
    await createStore();
    execute(home.file, sql);
    const environment = { DATABASE_URL: `sqlite:${home.file}`, AUTH_TOKENS: TOKEN };
    const content = readFileSync(home.file);

    const checked = await plantStore(['check'], environment);

    expect(readdirSync(dirname(home.file))).toEqual(['plants.db']);
    expect(readFileSync(home.file).equals(content)).toBe(true);
    const started = await plantStore(['serve'], { ...environment, PORT: '0' });
    expect(checked.stdout).toMatch(/^FAILED {2}store: /m);
    expect(checked.stdout).toMatch(reason);
    expect(started.stderr).toMatch(reason);
    expect([checked.code, started.code]).toEqual([1, 1]);
  });

  describeOnLinux(() => {
    it.each([
      ['that is denied', 'plants.db', '-wal', 'EACCES: permission denied, access'],
      ['whose name is too long', 'x'.repeat(248), '', 'ENAMETOOLONG: name too long, lstat'],
    ])(
      'names a file of SQLite %s, like a start of the service',
      async (_what, name, suffix, reason) => {
        await createStore();
        const file = join(dirname(home.file), name);
        if (suffix !== '') {
          writeFileSync(file + suffix, 'x'.repeat(100));
          chmodSync(file + suffix, 0);
        }
        const environment = { DATABASE_URL: `sqlite:${file}`, AUTH_TOKENS: TOKEN };
        const options = { wrapper: WITHOUT_ROOT_ACCESS };

        const checked = await plantStore(['check'], environment, options);
        const started = await plantStore(['serve'], { ...environment, PORT: '0' }, options);

        for (const { code, stdout, stderr } of [checked, started]) {
          expect([code, stdout + stderr]).toEqual([1, expect.stringContaining(reason)]);
          expect(stdout + stderr).toContain(`'${file}-`);
        }
      },
    );
  });

  it('fails for a new store in a file system that cannot contain one', async () => {
    const environment = { DATABASE_URL: 'sqlite:/proc/x/y.db', AUTH_TOKENS: TOKEN };

    const { code, stdout } = await plantStore(['check'], environment);

    expect(code).toBe(1);
    expect(stdout).toMatch(/^FAILED {2}store: .*: ENOENT/m);
  });

  it('succeeds next to a service, and leaves the write-ahead log of a killed service as it is', async () => {
    const service = await home.start();
    await service.post('{"id":1,"name":"Fern"}');
    const environment = { DATABASE_URL: `sqlite:${home.file}`, AUTH_TOKENS: TOKEN };
    const running = await plantStore(['check'], environment);
    await service.post('{"id":2,"name":"Fern"}');
    await service.end('SIGKILL');
    const log = readFileSync(`${home.file}-wal`);

    const killed = await plantStore(['check'], environment);

    expect([running.code, killed.code]).toEqual([0, 0]);
    expect(readFileSync(`${home.file}-wal`).equals(log)).toBe(true);
    expect(home.plants()).toHaveLength(2);
  });

  it.each([
    ['has expired', -2, -1, 'FAILED  TLS: A certificate in TLS_CERT is valid only from ', ''],
    ['is not yet valid', 1, 2, 'FAILED  TLS: A certificate in TLS_CERT is valid only from ', ''],
    ['is valid, with that of its issuer', -1, 1, 'ok      TLS: ', ''],
    ['is alone', -1, 1, 'ok      TLS: ', 'TLS_CERT lacks the certificate of its issuer (CN=CA)'],
  ])('tests a certificate that %s', async (what, from, to, line, warning) => {
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
    const ca = await generate([{ name: 'commonName', value: 'CA' }], {
      extensions: [{ name: 'basicConstraints', cA: true }],
    });
    const { cert, private: key } = await generate([{ name: 'commonName', value: 'x' }], {
      notBeforeDate: inDays(from),
      notAfterDate: inDays(to),
      ca: { key: ca.private, cert: ca.cert },
    });
    writeFileSync(
      join(home.folder, 'cert.pem'),
      what === 'is alone' ? cert : `${cert}\n${ca.cert}`,
    );
    writeFileSync(join(home.folder, 'key.pem'), key);
    const environment = { TLS_CERT: 'cert.pem', TLS_KEY: 'key.pem' };

    const outcome = await plantStore(['check'], environment, { cwd: home.folder });

    expect(outcome.code).toBe(line.startsWith('ok') ? 0 : 1);
    expect(outcome.stdout).toContain(line);
    expect(outcome.stderr.slice(0, warning.length || undefined)).toBe(warning);
  });

  it('leaves nothing behind in the directory of a new store', async () => {
    const environment = { DATABASE_URL: 'sqlite:new/plants.db', AUTH_TOKENS: TOKEN };

    const { stdout } = await plantStore(['check'], environment, { cwd: home.folder });

    expect(stdout).toContain('new/plants.db, which the service will create\n');
    expect(readdirSync(home.folder)).toEqual([]);
  });

  it.each([['check'], ['check', '--deep'], ['backup', 'copy.db']])(
    'leaves no file behind next to a stopped store: %s %s',
    async (...command) => {
      await createStore();
      const environment = { DATABASE_URL: `sqlite:${home.file}`, AUTH_TOKENS: TOKEN };

      const { code } = await plantStore(command, environment, { cwd: home.folder });

      expect([code, readdirSync(dirname(home.file))]).toEqual([0, ['plants.db']]);
    },
  );

  it('changes nothing in a PostgreSQL database, and prints the identity of its store', async () => {
    const server = await PostgresServer.start();
    const environment = { DATABASE_URL: server.url(), AUTH_TOKENS: TOKEN };

    const empty = await plantStore(['check'], environment);
    const tables = await server.execute("SELECT FROM pg_class WHERE relname LIKE 'plants%'");
    await plantStore(['import'], environment);
    const created = await plantStore(['check'], environment);
    const inProduction = await plantStore(['check'], { ...environment, NODE_ENV: 'production' });
    const rows = await server.plants();
    await server.execute('CREATE ROLE reader LOGIN IN ROLE pg_read_all_data');
    const asReader = server.url().replace('postgres@', 'reader@');
    const reader = await plantStore(['check'], { ...environment, DATABASE_URL: asReader });
    await server.execute('ALTER TABLE plants DROP tag');
    const misfit = await plantStore(['check'], environment);
    await server.remove();

    expect(empty.stdout).toContain('which has no table plants: the service will create it');
    expect([tables, rows]).toEqual([[], []]);
    expect(reader.stdout).toMatch(/^FAILED {2}store: .*: permission denied for table plants/m);
    const risk = `PostgreSQL at ${new URL(server.url()).host}/postgres: fsync is off, so a power loss could lose plants: set it to on.`;
    expect([created.code, created.stderr]).toEqual([0, `${risk}\n`]);
    expect(inProduction.stdout).toContain(`FAILED  store: ${risk}\n`);
    expect(misfit.stdout).toMatch(
      /^FAILED {2}store: .*: the column tag of plants must be text, but is missing\.$/m,
    );
    expect(created.stdout).toMatch(
      /^ok {6}store: PostgreSQL at .*, the store [-0-9a-f]{36}, schema version \d+$/m,
    );
  });
});

describe('health', () => {
  it('loads no code of the service', async () => {
    const script = `process.argv.push(${JSON.stringify(CLI_PATH)}, 'health');
      require(process.argv[1]);
      process.on('exit', () => console.log(Object.keys(require.cache).join()));`;

    const { stdout } = await run(process.execPath, ['-e', script], { env: { PORT: '1' } });

    expect(stdout).toContain('health.command.js');
    expect(stdout).not.toMatch(/node_modules|commands\.js/);
  });

  it('reports whether the service is live and ready', async () => {
    const service = await home.start();
    const { port } = await service.url();
    const health = (option: string[] = [], environment = {}): Promise<RunResult> =>
      plantStore(['health', ...option], { PORT: port, ...environment });
    const ready = await health(['--ready']);
    const lock = lockDatabase(home.file);
    await service.post('{"id":1,"name":"x"}');
    const live = await health([], { HOST: '0.0.0.0' });
    const unready = await health(['--ready']);
    lock.close();
    await service.end('SIGKILL');
    const unreachable = await health();
    const quoted = await health([], { PORT: `"${port}"` });

    expect(live).toEqual({ code: 0, stdout: 'live\n', stderr: '' });
    expect(quoted).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('PORT must not be in quotation marks') as string,
    });
    expect(ready).toEqual({ code: 0, stdout: 'ready\n', stderr: '' });
    const notReadyMessage = `The health check of 127.0.0.1 port ${port} failed: it returned status 503.\n`;
    expect(unready).toEqual({ code: 1, stdout: '', stderr: notReadyMessage });
    const unreachableMessage = `The health check of 127.0.0.1 port ${port} failed: connect ECONNREFUSED 127.0.0.1:${port}.\n`;
    expect(unreachable).toEqual({ code: 1, stdout: '', stderr: unreachableMessage });
  });
});
