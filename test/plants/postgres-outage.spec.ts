import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { OutcomeUnknownError, UnavailableError } from '../../src/plants';
import type { CommittingPlantsRepository } from '../../src/plants/persistence/committing-plants.repository';
import { openRepository } from '../../src/plants/persistence/stores';
import { useLog } from '../support/log';
import { PostgresServer } from '../support/postgres';
import { until } from '../support/until';
import { beforeInsert, NOT_BEFORE_INSERT, SESSIONS } from './postgres-statements';

const HELD = `${SESSIONS} AND wait_event = 'PgSleep'`;

describe('The repository on PostgreSQL, when the database fails', () => {
  let server: PostgresServer;
  let repository: CommittingPlantsRepository;
  const { lines: log, errors } = useLog();
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  beforeEach(async () => {
    repository = await openRepository({ postgres: server.url() });
    await server.execute('TRUNCATE plants');
  });
  afterEach(() => repository.onApplicationShutdown());
  afterAll(() => server.remove());

  const insert = (id: bigint) => repository.insert({ id, name: 'Fern' });
  const outcomeOf = (id: bigint) => insert(id).catch((error: unknown) => error);

  async function reopen(url: string): Promise<void> {
    await repository.onApplicationShutdown();
    repository = await openRepository({ postgres: url });
  }

  const endSessions = () =>
    server.execute(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'plant-store'`,
    );

  async function expectRecovery(): Promise<void> {
    await until(() => repository.isReady());
    expect(await insert(1000n)).toBe('created');
    expect(log.at(-1)).toMatch(/^log PostgreSQL at 127.0.0.1:\d+\/\w+: in use again\.$/);
  }

  it('notices without traffic that the server has gone, and that it is back', async () => {
    await server.stop('SIGKILL');
    await until(() => !repository.isReady());

    await expect(insert(1n)).rejects.toThrow(UnavailableError);
    const advice = 'Check that the server runs, and the host and the port.';
    await until(() => errors().at(-1)?.endsWith(`(ECONNREFUSED). ${advice}`) === true);
    await server.start();

    await expectRecovery();
  });

  it('abandons a statement without an answer, closes its session, and does not cancel it', async () => {
    await reopen(`${server.url()}?query_timeout=300`);
    await server.execute(beforeInsert('IF NEW.id = 1 THEN PERFORM pg_sleep(60); END IF'));

    expect(await outcomeOf(1n)).toBeInstanceOf(OutcomeUnknownError);
    await expectRecovery();
    expect(await server.execute(HELD)).toHaveLength(1);
    await server.execute(HELD.replace('pid', 'pg_terminate_backend(pid)'));
    await server.execute(NOT_BEFORE_INSERT);
  });

  it('stays ready and tries one batch a second while the server lacks another one', async () => {
    const message = "E'no answer\\n of a shard'";
    await server.execute(beforeInsert(`RAISE connection_failure USING MESSAGE = ${message}`));
    const attempt = () => outcomeOf(1n);

    expect(await attempt()).toBeInstanceOf(OutcomeUnknownError);
    expect(await attempt()).toBeInstanceOf(UnavailableError);
    await until(async () => (await attempt()) instanceof OutcomeUnknownError);
    expect(repository.isReady()).toBe(true);
    expect(errors()).toEqual([expect.stringMatching(/: no answer of a shard \(08006\)\.$/)]);
    await server.execute(NOT_BEFORE_INSERT);

    await until(async () => (await attempt()) === 'created');
  });

  it('stores each creation once that is repeated while its sessions are ended again and again', async () => {
    const ids = Array.from({ length: 300 }, (_, at) => BigInt(at));
    const create = async (id: bigint): Promise<void> => {
      for (;;) {
        const key = hash('sha256', 'abc');
        const outcome = await repository.insert({ id, name: 'Fern' }, key).catch(String);
        if (['created', 'replayed'].includes(outcome)) return;
        expect(outcome).toMatch(/^(Unavailable|OutcomeUnknown)Error/);
        await setTimeout(10);
      }
    };
    let isDone = false;
    const ending = until(async () => {
      await endSessions();
      await until(() => isDone || repository.isReady());
      return isDone;
    });

    for (let first = 0; first < ids.length; first += 10) {
      await Promise.all(ids.slice(first, first + 10).map(create));
    }
    isDone = true;
    await ending;

    expect((await server.plants()).map(({ id }) => id)).toEqual(ids);
  });

  it('names the database that is missing, at a start too', async () => {
    await reopen(server.url('meadow'));

    expect(repository.isReady()).toBe(false);
    await expect(insert(1n)).rejects.toThrow(UnavailableError);
    expect(errors()).toEqual([
      expect.stringContaining(
        'database "meadow" does not exist (3D000). Create the database, or correct its name.',
      ),
    ]);
    await server.execute('CREATE DATABASE meadow');
    await expectRecovery();
  });

  it('is not ready while a commit waits for a missing standby, and leaves one session waiting', async () => {
    await reopen(`${server.url()}?query_timeout=3000`);
    await server.reconfigure("SET synchronous_standby_names = 'nobody'");
    let id = 1n;
    // The session takes a moment to notice.
    await until(async () => (await outcomeOf(id++)) instanceof OutcomeUnknownError);

    const reason = 'a commit still waits for a synchronous standby';
    await until(() => errors().some((line) => line.includes(reason)));
    await expect(insert(id)).rejects.toThrow(UnavailableError);
    expect(await server.execute(`${SESSIONS} AND wait_event = 'SyncRep'`)).toHaveLength(1);
    await server.reconfigure('RESET synchronous_standby_names');

    await expectRecovery();
    expect(await server.plants()).toContainEqual({ id: id - 1n, name: 'Fern' });
  });

  it('is not ready after a slow commit, until a commit of nothing is in time', async () => {
    await server.execute(beforeInsert('PERFORM pg_sleep(2)'));
    expect(await insert(1n)).toBe('created');
    expect(repository.isReady()).toBe(false);

    await until(() => repository.isReady());

    const probes = `${SESSIONS} AND query LIKE 'SELECT pg_logical_emit_message%'`;
    expect(await server.execute(probes)).toHaveLength(1);
    await server.execute(NOT_BEFORE_INSERT);
  });

  describe('with a user of its own', () => {
    let url: string;
    beforeAll(async () => {
      const roles = 'pg_write_all_data, pg_read_all_data';
      await server.execute(`CREATE ROLE clerk LOGIN PASSWORD 'good-password' IN ROLE ${roles}`);
      await server.admit('host all clerk 127.0.0.1/32 scram-sha-256');
      await server.execute('CREATE DATABASE orchard');
      await (await openRepository({ postgres: server.url('orchard') })).onApplicationShutdown();
      url = server.url('orchard').replace('postgres@', 'clerk:good-password@');
    });

    it.each([
      [
        'a wrong password, without showing it,',
        "ALTER ROLE clerk PASSWORD 'other-password'",
        'password authentication failed for user "clerk" (28P01). Check the user and the password.',
        "ALTER ROLE clerk PASSWORD 'good-password'",
      ],
      [
        'that there is no free connection',
        'ALTER ROLE clerk CONNECTION LIMIT 0',
        '(53300). Raise max_connections of the server, or run fewer instances.',
        'ALTER ROLE clerk CONNECTION LIMIT 9',
      ],
      [
        'missing rights',
        'REVOKE pg_write_all_data FROM clerk',
        '(42501). Grant the user SELECT and INSERT on plants',
        'GRANT pg_write_all_data TO clerk',
      ],
      [
        'a full disk',
        beforeInsert("RAISE disk_full USING MESSAGE = 'No space left on device'"),
        'No space left on device (53100). Free disk space on the database',
        NOT_BEFORE_INSERT,
      ],
    ])('reports %s and waits until that is corrected', async (_what, spoil, fault, mend) => {
      await reopen(url);
      await server.execute(spoil, 'orchard');
      await endSessions();

      await until(async () => {
        const outcome = await outcomeOf(1n);
        return outcome instanceof UnavailableError && errors().at(-1)?.includes(fault) === true;
      });
      expect(repository.isReady()).toBe(false);
      expect(errors().join()).not.toContain('good-password');
      await server.execute(mend, 'orchard');

      await expectRecovery();
      await server.execute('TRUNCATE plants', 'orchard');
    });
  });
});
