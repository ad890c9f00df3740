import { hash } from 'node:crypto';
import { Client, type ClientConfig, type PoolConfig } from 'pg';
import { UnavailableError } from '../../src/plants';
import type { DatabasePlantsRepository } from '../../src/plants/persistence/database-plants.repository';
import { MIGRATIONS } from '../../src/plants/persistence/migrations';
import { openRepository } from '../../src/plants/persistence/stores';
import { StoreOpenError } from '../../src/plants/persistence/store-open.error';
import { errorNumbers } from '../support/error-bodies';
import { useLog } from '../support/log';
import { PostgresServer } from '../support/postgres';
import { until } from '../support/until';
import { beforeInsert, NOT_BEFORE_INSERT, SESSIONS, TABLE } from './postgres-statements';

const KEY = hash('sha256', 'abc');

/** The lock that instances take before they create a store. */
const LOCK = "SELECT pg_advisory_lock(x'706c616e7473'::bigint)";

/** Creates a store of another program, without an identity. */
const storeOf = (version: number) => `
  ${TABLE};
  CREATE TABLE plants_migrations (version integer PRIMARY KEY, identity uuid);
  INSERT INTO plants_migrations VALUES (${version})`;

/** Selects the sessions of the repositories. */
const OWN = `${SESSIONS} AND application_name = 'plant-store'`;

/** Selects the sessions that wait for a lock. */
const WAITING = `${SESSIONS} AND wait_event_type = 'Lock'`;

let server: PostgresServer;
let databases = 0;
const { lines: log } = useLog();
beforeAll(async () => {
  server = await PostgresServer.start({ fsync: 'off', max_connections: 200 });
});
afterAll(() => server.remove());

/** Creates a database, runs statements in it, and returns its name. */
async function createDatabase(statements = ''): Promise<string> {
  const name = `plants_${++databases}`;
  await server.execute(`CREATE DATABASE ${name}`);
  await server.execute(statements, name);
  return name;
}

async function tablesOf(database: string): Promise<unknown[]> {
  const names = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
  return (await server.execute(names, database)).map(({ tablename }) => tablename);
}

describe('the PostgreSQL repository', () => {
  let database: string;
  let url: string;
  let repository: DatabasePlantsRepository;
  beforeEach(async () => {
    database = await createDatabase();
    url = server.url(database);
    repository = await openRepository({ postgres: url });
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await repository.onApplicationShutdown();
  });

  const fern = { id: 1n, name: 'Fern' };
  const insert = (id: bigint, name = 'Fern') => repository.insert({ id, name });
  const execute = (statements: string) => server.execute(statements, database);

  async function reopen(where: string | PoolConfig): Promise<void> {
    await repository.onApplicationShutdown();
    repository = await openRepository({ postgres: where });
  }

  /** Opens another session, and runs statements in a transaction that stays open. */
  async function openTransaction(statements: string): Promise<Client> {
    const other = await server.connect(database);
    await other.query(`BEGIN; ${statements}`);
    return other;
  }

  async function untilWaiting(sessions = 1, where = database): Promise<void> {
    await until(async () => (await server.execute(WAITING, where)).length === sessions);
  }

  const ownSessions = () => execute(OWN);

  describe('at startup', () => {
    it('creates one store when ten repositories open an empty database at the same time', async () => {
      const fresh = await createDatabase();
      const logged = server.log.length;
      const locker = await server.connect(fresh);
      await locker.query(LOCK);

      const opening = Array.from({ length: 10 }, () =>
        openRepository({ postgres: server.url(fresh) }),
      );
      await untilWaiting(10, fresh);
      await locker.end();
      const repositories = await Promise.all(opening);
      await until(() => repositories.every((each) => each.isReady()));
      const insertions = await Promise.all(repositories.map((each) => each.insert(fern, KEY)));
      await Promise.all(repositories.map((each) => each.onApplicationShutdown()));

      expect(insertions.toSorted()).toEqual(['created', ...Array<string>(9).fill('replayed')]);
      expect(server.log.slice(logged)).not.toContain('ERROR');
    });

    it('uses a table of the operator unchanged, with only SELECT and INSERT', async () => {
      const prepared = await createDatabase(
        `${TABLE};
         ALTER TABLE plants ADD idempotency_key bytea, ADD extra int DEFAULT 7;
         CREATE ROLE clerk LOGIN;
         GRANT SELECT, INSERT ON plants TO clerk`,
      );

      await reopen(server.url(prepared).replace('postgres@', 'clerk@'));

      expect(await repository.insert(fern, KEY)).toBe('created');
      // A new session finds the same store.
      await server.execute(OWN.replace('pid', 'pg_terminate_backend(pid)'), prepared);
      await until(async () => (await repository.insert(fern, KEY).catch(String)) === 'replayed');
      expect(await tablesOf(prepared)).toEqual(['plants']);
    });

    it('ignores keys on a table of the operator without the column, and warns once', async () => {
      await reopen(server.url(await createDatabase(TABLE)));

      expect(await repository.insert(fern, KEY)).toBe('created');
      expect(await repository.insert(fern, KEY)).toBe('taken');
      expect(log.filter((line) => line.startsWith('warn'))).toEqual([
        expect.stringContaining('Idempotency-Key header is ignored'),
      ]);
    });

    it.each([
      ['has other columns', 'CREATE TABLE plants (id bigint)', ['plants'], 'must have the columns'],
      [
        'is missing, although its record exists',
        `${storeOf(MIGRATIONS.length)}; DROP TABLE plants`,
        ['plants_migrations'],
        'the table plants is missing, although plants_migrations exists',
      ],
      [
        'has another version',
        storeOf(1000),
        ['plants', 'plants_migrations'],
        `the database has schema version 1000, and this service knows versions up to ${MIGRATIONS.length}`,
      ],
    ])(
      'is not ready while the table %s, and changes nothing',
      async (_, statements, tables, why) => {
        const damaged = await createDatabase(statements);

        await reopen(server.url(damaged));

        expect(repository.isReady()).toBe(false);
        expect(repository.currentFailure()?.message).toContain(why);
        expect(await tablesOf(damaged)).toEqual(tables);
      },
    );

    it.each([
      ['synchronous_commit', 'off'],
      ['client_min_messages', 'error'],
    ])('is not ready while the role has %s %s, and ready after a reset', async (name, value) => {
      const role = `role_${database}`;
      await execute(`CREATE ROLE ${role} SUPERUSER LOGIN`);
      await execute(`ALTER ROLE ${role} SET ${name} = ${value}`);
      await reopen(url.replace('postgres@', `${role}@`));

      expect(repository.isReady()).toBe(false);
      await execute(`ALTER ROLE ${role} RESET ${name}`);
      await until(() => repository.isReady());
    });
  });

  it('commits accepted plants when it closes, rejects new ones, and closes its sessions', async () => {
    const inserts = Array.from({ length: 100 }, (_, at) => insert(BigInt(at)));

    const closing = repository.onApplicationShutdown();

    await expect(insert(100n)).rejects.toThrow(UnavailableError);
    await closing;
    expect(await Promise.all(inserts)).toEqual(Array(100).fill('created'));
    await until(async () => (await ownSessions()).length === 0);
  });

  it('stays ready while all sessions are in use by readers', async () => {
    await reopen({ connectionString: `${url}?connect_timeout=1`, max: 1 });
    const other = await openTransaction('LOCK TABLE plants');
    const reading = repository.find(1n);
    await untilWaiting();

    await expect(repository.find(2n)).rejects.toThrow(UnavailableError);

    expect(repository.isReady()).toBe(true);
    await other.end();
    expect(await reading).toBeUndefined();
  });

  describe('a batch', () => {
    /** Makes inserts of some rows fail. */
    const raise = (code: string, condition: string) =>
      execute(beforeInsert(`IF ${condition} THEN RAISE 'no' USING ERRCODE = ${code}; END IF`));

    it('contains each id once, in order, so that instances cannot deadlock', async () => {
      await execute('CREATE TABLE attempts (id bigint)');
      await execute(beforeInsert('INSERT INTO attempts VALUES (NEW.id)'));

      await Promise.all([insert(30n), insert(4n), insert(-5n), insert(4n)]);

      const attempts = await execute('SELECT id FROM attempts');
      expect(attempts.map(({ id }) => id)).toEqual(['-5', '4', '30']);
    });

    it('is one statement, with a second one for plants with keys that were not inserted', async () => {
      const sent = jest.spyOn(Client.prototype, 'query');

      await Promise.all([insert(2n), insert(2n), repository.insert(fern, KEY)]);
      const ofCreations = sent.mock.calls.length;
      await Promise.all([insert(2n), repository.insert(fern, KEY)]);

      expect([ofCreations, sent.mock.calls.length - ofCreations]).toEqual([1, 2]);
    });

    it('replays a plant that another instance stores while the insert waits for it', async () => {
      const other = await openTransaction(
        `INSERT INTO plants VALUES (2, 'Fern', NULL, '\\x${KEY}')`,
      );
      const outcome = repository.insert({ id: 2n, name: 'Fern' }, KEY);
      await untilWaiting();

      await other.query('COMMIT');

      expect(await outcome).toBe('replayed');
      await other.end();
    });

    it('fails only for the plant whose key the table rejects, and its retries', async () => {
      await execute("ALTER TABLE plants ADD CHECK (name <> 'Weed')");
      const once = (id: bigint, name: string) => repository.insert({ id, name }, KEY);

      // prettier-ignore
      const settled = await Promise.allSettled([
        once(1n, 'Fern'), once(2n, 'Weed'), once(1n, 'Fern'),
        once(2n, 'Weed'), once(2n, 'Fern'), once(3n, 'Fern'),
      ]);

      // prettier-ignore
      expect(settled).toMatchObject([
        { value: 'created' }, { reason: { error: errorNumbers.internal } }, { value: 'replayed' },
        { reason: { error: errorNumbers.unavailable } }, { reason: { error: errorNumbers.unavailable } }, { value: 'created' },
      ]);
      expect(await once(2n, 'Fern')).toBe('created');
    });

    it('rejects a retry that it cannot look up, and replays it afterwards', async () => {
      await repository.insert(fern, KEY);
      // After its insert, the session no longer finds the table plants.
      await execute(beforeInsert("PERFORM set_config('search_path', 'nowhere', false)"));

      await expect(repository.insert(fern, KEY)).rejects.toThrow(UnavailableError);

      await execute(NOT_BEFORE_INSERT);
      await until(() => repository.isReady());
      expect(await repository.insert(fern, KEY)).toBe('replayed');
    });

    const [row, rejected, unknown] = [
      errorNumbers.internal,
      errorNumbers.unavailable,
      errorNumbers.outcomeUnknown,
    ];
    const responses: [error: number, isReady: boolean, codes: string][] = [
      [row, true, '21000 22023 23514 44000 54000 09000 38000 39000 45000 P0001 UE001 70001'],
      [rejected, true, '40002 55P03 57014 72000'],
      [unknown, false, '08006 XX000 40003'],
      [rejected, false, '25006 42501 42P01 53100 58030'],
    ];
    it.each(
      responses.flatMap(([error, isReady, codes]) =>
        codes.split(' ').map((code) => [code, error, isReady] as const),
      ),
    )('fails with SQLSTATE %s as error %i', async (code, error, isReady) => {
      await raise('NEW.name', "NEW.name <> 'Fern'");

      const settled = await Promise.allSettled([insert(1n), insert(2n, code), insert(3n)]);

      const neighbour = error === row ? { value: 'created' } : { reason: { error } };
      expect(settled).toMatchObject([neighbour, { reason: { error } }, neighbour]);
      expect(repository.isReady()).toBe(isReady);
    });

    it.each(['40001', '40P01', '26000', '42P05'])('is retried after SQLSTATE %s', async (code) => {
      await execute('CREATE SEQUENCE attempts');
      await raise(`'${code}'`, "nextval('attempts') < 3");

      expect(await insert(1n)).toBe('created');
    });

    it('fails only for the plant that a row-level policy rejects', async () => {
      await execute(
        `CREATE ROLE gardener LOGIN;
         GRANT SELECT, INSERT ON plants, plants_migrations TO gardener;
         ALTER TABLE plants ENABLE ROW LEVEL SECURITY;
         CREATE POLICY see ON plants FOR SELECT USING (true);
         CREATE POLICY plant ON plants FOR INSERT WITH CHECK (name <> 'Weed')`,
      );
      await reopen(url.replace('postgres@', 'gardener@'));

      const settled = await Promise.allSettled([insert(1n), insert(2n, 'Weed'), insert(3n)]);
      const rejected = { reason: { error: errorNumbers.internal } };
      expect(settled).toMatchObject([{ value: 'created' }, rejected, { value: 'created' }]);
    });

    it('rejects the plants that were not sent when a session ends during the batch', async () => {
      const ends = "NEW.name = 'Axe' AND pg_terminate_backend(pg_backend_pid())";
      await raise("'23514'", `NEW.name = 'Weed' OR (${ends})`);

      const names = ['Weed', 'Axe', 'Fern', 'Fern'];
      const settled = await Promise.allSettled(names.map((name, at) => insert(BigInt(at), name)));

      const expected = [
        errorNumbers.internal,
        errorNumbers.outcomeUnknown,
        errorNumbers.unavailable,
        errorNumbers.unavailable,
      ].map((error) => ({ reason: { error } }));
      expect(settled).toMatchObject(expected);
    });

    it('is no longer prepared after a proxy has removed its prepared statement', async () => {
      await execute('CREATE TABLE prepared (name text)');
      const note = 'INSERT INTO prepared SELECT name FROM pg_prepared_statements';
      await execute(beforeInsert(`${note}; EXECUTE 'DEALLOCATE ALL'`));

      expect(await insert(1n)).toBe('created');
      expect([await insert(1n), await insert(2n)]).toEqual(['taken', 'created']);

      const names = await execute('SELECT name FROM prepared');
      expect(names).toEqual([{ name: expect.stringMatching(/^plants-/) as string }]);
    });
  });

  describe('while the synchronous standby is missing', () => {
    beforeEach(() => server.reconfigure("SET synchronous_standby_names = 'nobody'"));
    afterEach(() => server.reconfigure('RESET synchronous_standby_names'));

    const waiting = `${SESSIONS} AND wait_event = 'SyncRep'`;

    it('does not report success when the wait is cancelled', async () => {
      // The server applies the new settings after a delay.
      const insertUntilFailure = async (id: bigint): Promise<unknown> =>
        insert(id).then(() => insertUntilFailure(id + 1n));
      const failure = insertUntilFailure(1n).catch((error: unknown) => error);
      await until(async () => (await execute(waiting)).length > 0);

      await execute(waiting.replace('pid', 'pg_cancel_backend(pid)'));

      expect(await failure).toMatchObject({
        error: errorNumbers.outcomeUnknown,
        cause: { message: expect.stringContaining('standby was cancelled') as string },
      });
    });

    it('does not confirm a retry before the standby has the plant', async () => {
      await execute(
        `SET synchronous_commit = local;
         INSERT INTO plants (id, name, idempotency_key) VALUES (1, 'Fern', '\\x${KEY}')`,
      );

      let isSettled = false;
      let retry: Promise<unknown> | undefined;
      // The first retries may arrive before the server has applied the new settings.
      await until(async () => {
        isSettled = false;
        retry = repository.insert(fern, KEY).finally(() => (isSettled = true));
        await until(async () => isSettled || (await execute(waiting)).length > 0);
        return !isSettled;
      });
      await server.reconfigure('RESET synchronous_standby_names');

      expect(await retry).toBe('replayed');
    });
  });

  it.each<[string, ClientConfig]>([
    ['the host program sets other parsers', { types: { getTypeParser: () => () => 7 } }],
    ['the driver asks for binary results', { binary: true } as ClientConfig],
  ])('reads plants exactly even if %s', async (_what, settings) => {
    const id = 9_007_199_254_740_993n;
    await reopen({ connectionString: url, ...settings });

    expect([await insert(id), await insert(id)]).toEqual(['created', 'taken']);
    expect(await repository.page(undefined, 1)).toEqual([{ id, name: 'Fern' }]);
  });

  describe('with settings of the driver', () => {
    it('reads the host from the URL; other settings override the URL', async () => {
      const connectionString = url.replace('postgres@', 'nobody@');
      const overrides = { user: 'postgres', database: undefined, application_name: 'orchard' };
      await reopen({ connectionString, ...overrides });

      expect(await insert(1n)).toBe('created');
      expect(await execute(`${SESSIONS} AND application_name = 'orchard'`)).toHaveLength(1);
    });

    it.each<ClientConfig>([
      { connectionString: 'postgres://localhost?sslmode=prefer' },
      { connectionString: 'postgres://localhost?sslmode=verify-full&sslrootcert=/nowhere' },
      { host: 'one,two' },
      { sslnegotiation: 'direct', ssl: false },
    ])('does not start with %j', async (invalid) => {
      await expect(openRepository({ postgres: invalid })).rejects.toThrow(StoreOpenError);
    });

    it('lets the server cancel a statement after statement_timeout', async () => {
      const other = await openTransaction("INSERT INTO plants VALUES (1, 'Moss')");
      await reopen({ connectionString: url, statement_timeout: 500 });

      await expect(insert(1n)).rejects.toThrow(UnavailableError);
      await other.end();
    });

    it('is not ready while a password function fails, keeps no sockets open, and calls it again', async () => {
      await server.execute("CREATE ROLE forgetful LOGIN SUPERUSER PASSWORD 'good'");
      await server.addAccessRule('host all forgetful 127.0.0.1/32 scram-sha-256');
      const password = jest.fn(() => Promise.reject<string>(new Error('no password today')));
      await reopen({ connectionString: url, user: 'forgetful', password });
      await until(() => password.mock.calls.length > 3);

      await expect(insert(1n)).rejects.toMatchObject({
        cause: { message: expect.stringContaining('no password today') as string },
      });
      const starting = "SELECT pid FROM pg_stat_activity WHERE state = 'starting'";
      await until(async () => (await execute(starting)).length <= 1);

      password.mockImplementation(() => Promise.resolve('good'));
      await until(() => repository.isReady());
      expect(await insert(1n)).toBe('created');
    });
  });
});
