import { hash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type { ClientConfig } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../src/plants';
import type { DatabasePlantsRepository } from '../../src/plants/persistence/database-plants.repository';
import { openRepository } from '../../src/plants/persistence/stores';
import { errorNumbers } from '../support/error-bodies';
import { useLog } from '../support/log';
import { PostgresServer } from '../support/postgres';
import { until } from '../support/until';
import { beforeInsert, NOT_BEFORE_INSERT, SESSIONS, TABLE } from './postgres-statements';

const HELD = `${SESSIONS} AND wait_event = 'PgSleep'`;

describe('the PostgreSQL repository when the database fails', () => {
  let server: PostgresServer;
  let repository: DatabasePlantsRepository;
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

  async function reopen(postgres: string | ClientConfig): Promise<void> {
    await repository.onApplicationShutdown();
    repository = await openRepository({ postgres });
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

  it('detects loss and recovery of the server without traffic', async () => {
    await server.stop('SIGKILL');
    await until(() => !repository.isReady());

    await expect(insert(1n)).rejects.toThrow(UnavailableError);
    const advice = 'Check that the server is running, and check the host and the port.';
    await until(
      () =>
        errors().at(-1)?.endsWith(`connect ECONNREFUSED 127.0.0.1:${server.port}. ${advice}`) ===
        true,
    );
    await server.start();

    await expectRecovery();
  });

  it('closes the session of a statement that gets no response, without cancelling it', async () => {
    await reopen({ connectionString: server.url(), query_timeout: 300 });
    await server.execute(beforeInsert('IF NEW.id = 1 THEN PERFORM pg_sleep(60); END IF'));

    expect(await outcomeOf(1n)).toBeInstanceOf(OutcomeUnknownError);
    await expectRecovery();
    expect(await server.execute(HELD)).toHaveLength(1);
    await server.execute(HELD.replace('pid', 'pg_terminate_backend(pid)'));
    await server.execute(NOT_BEFORE_INSERT);
  });

  it('is not ready while a node of the database fails, and logs that once', async () => {
    const message = "E'no answer\\n of a shard'";
    await server.execute(beforeInsert(`RAISE connection_failure USING MESSAGE = ${message}`));

    expect(await outcomeOf(1n)).toBeInstanceOf(OutcomeUnknownError);
    expect(await outcomeOf(1n)).toBeInstanceOf(UnavailableError);
    expect(repository.isReady()).toBe(false);
    // In this time, the store is reopened and probed.
    await setTimeout(2000);
    expect(repository.isReady()).toBe(false);
    expect(errors()).toEqual([expect.stringMatching(/: no answer of a shard \(08006\)\.$/)]);
    await server.execute(NOT_BEFORE_INSERT);

    await expectRecovery();
  });

  it('stores each retried plant once while its sessions are repeatedly terminated', async () => {
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

  it('reports a missing database by name, also at startup', async () => {
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
    await reopen({ connectionString: server.url(), query_timeout: 3000 });
    await server.reconfigure("SET synchronous_standby_names = 'nobody'");
    let id = 1n;
    // The server applies the new settings after a delay.
    await until(async () => (await outcomeOf(id++)) instanceof OutcomeUnknownError);

    const reason = 'a commit still waits for a synchronous standby';
    await until(() => errors().some((line) => line.includes(reason)));
    await expect(insert(id)).rejects.toThrow(UnavailableError);
    expect(await server.execute(`${SESSIONS} AND wait_event = 'SyncRep'`)).toHaveLength(1);
    await server.reconfigure('RESET synchronous_standby_names');

    await expectRecovery();
    expect(await server.plants()).toContainEqual({ id: id - 1n, name: 'Fern' });
  });

  it('is not ready after a slow commit until a probe is fast again', async () => {
    await server.execute(beforeInsert("IF NEW.name = 'Fern' THEN PERFORM pg_sleep(2); END IF"));
    expect(await insert(1n)).toBe('created');
    expect(repository.isReady()).toBe(false);
    expect(errors()).toEqual([expect.stringContaining('a commit takes 2 seconds or more')]);

    await until(() => repository.isReady());

    expect(await server.plants()).toEqual([{ id: 1n, name: 'Fern' }]);
    expect(log.join()).not.toContain('in use again');
    await server.execute(NOT_BEFORE_INSERT);
    await expectRecovery();
  });

  describe('without losing a session', () => {
    const raise = (code: string) => beforeInsert(`RAISE SQLSTATE '${code}'`);

    /** Submits plants until the repository is not ready. */
    async function untilNotReady(): Promise<void> {
      await until(async () => {
        expect(await outcomeOf(1n)).toBeInstanceOf(PlantStoreError);
        return !repository.isReady();
      });
    }

    it.each([
      ['lock_timeout', '?options=-c%20lock_timeout%3D100', '', '55P03'],
      [
        'statement_timeout',
        '?options=-c%20statement_timeout%3D100',
        beforeInsert('PERFORM pg_sleep(0.2)'),
        '57014',
      ],
      ['an error of each row', '', raise('P0001'), 'P0001'],
      ['an internal error', '', raise('XX001'), 'XX001'],
      ['an object in use', '', raise('55006'), '55006'],
    ])(
      'is not ready while every insert fails with %s, with or without traffic, until an insert succeeds',
      async (_what, parameters, statements, code) => {
        await reopen(server.url() + parameters);
        const locker = await server.connect();
        await locker.query(statements || 'BEGIN; LOCK TABLE plants IN SHARE MODE');

        await untilNotReady();

        expect(errors().at(-1)).toContain(code);
        const { length } = log;
        // Probes without traffic have the same result.
        await setTimeout(1500);
        expect(repository.isReady()).toBe(false);
        expect(await outcomeOf(1n)).toBeInstanceOf(PlantStoreError);
        expect(log.slice(length).join()).not.toContain(code);
        await locker.query(statements ? NOT_BEFORE_INSERT : 'ROLLBACK');
        await locker.end();

        await expectRecovery();
        expect(await server.plants()).toEqual([{ id: 1000n, name: 'Fern' }]);
      },
    );

    it('goes on accepting plants while the database rejects rows and commits others', async () => {
      await server.execute(beforeInsert("IF NEW.name = 'Weed' THEN RAISE 'a weed'; END IF"));
      for (let id = 0n; id < 100n; id += 2n) {
        const weed = repository.insert({ id, name: 'Weed' });
        await expect(weed).rejects.toMatchObject({ error: errorNumbers.internal });
        expect(await insert(id + 1n)).toBe('created');
        expect(repository.currentFailure()).toBeUndefined();
      }
      await server.execute(NOT_BEFORE_INSERT);

      expect(log.join()).not.toContain('a weed');
    });

    it('is ready again after a slow commit when it has only SELECT and INSERT on the table', async () => {
      await server.execute('CREATE DATABASE garden');
      await server.execute(
        `${TABLE};
         CREATE ROLE gardener LOGIN;
         GRANT SELECT, INSERT ON plants TO gardener;
         REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text, boolean) FROM PUBLIC;
         REVOKE EXECUTE ON FUNCTION set_config, pg_current_xact_id, txid_current FROM PUBLIC;
         ${beforeInsert("IF NEW.name = 'Fern' THEN PERFORM pg_sleep(2); END IF")}`,
        'garden',
      );
      await reopen(server.url('garden').replace('postgres@', 'gardener@'));
      expect(await insert(1n)).toBe('created');
      expect(repository.isReady()).toBe(false);

      await until(() => repository.isReady());
    });

    it('leaves no session waiting for a lock when the store is probed', async () => {
      await reopen({ connectionString: server.url(), query_timeout: 2500 });
      const locker = await server.connect();
      await locker.query('BEGIN; LOCK TABLE plants IN SHARE MODE');
      await outcomeOf(1n);
      await until(() => errors().some((line) => line.includes('(55P03)')));

      const waiting = `${SESSIONS} AND wait_event_type = 'Lock'`;
      await setTimeout(4000);
      // The session of the plant, and possibly that of a probe.
      expect((await server.execute(waiting)).length).toBeLessThanOrEqual(2);
      await locker.query('ROLLBACK');
      await locker.end();

      await expectRecovery();
    });

    it('is ready again after a slow commit even if the table rejects the rows of a probe', async () => {
      await server.execute(
        beforeInsert("IF NEW.name = 'probe' THEN RAISE 'unknown'; END IF; PERFORM pg_sleep(2)"),
      );
      expect(await insert(1n)).toBe('created');
      expect(repository.isReady()).toBe(false);

      await until(() => repository.isReady());

      await server.execute(NOT_BEFORE_INSERT);
    });
  });

  describe('with its own database user', () => {
    let url: string;
    beforeAll(async () => {
      const roles = 'pg_write_all_data, pg_read_all_data';
      await server.execute(`CREATE ROLE clerk LOGIN PASSWORD 'good-password' IN ROLE ${roles}`);
      await server.addAccessRule('host all clerk 127.0.0.1/32 scram-sha-256');
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
    ])('reports %s and waits until it is corrected', async (_what, cause, fault, remedy) => {
      await reopen(url);
      await server.execute(cause, 'orchard');
      await endSessions();

      await until(async () => {
        const outcome = await outcomeOf(1n);
        return outcome instanceof UnavailableError && errors().at(-1)?.includes(fault) === true;
      });
      expect(repository.isReady()).toBe(false);
      expect(errors().join()).not.toContain('good-password');
      await server.execute(remedy, 'orchard');

      await expectRecovery();
      await server.execute('TRUNCATE plants', 'orchard');
    });
  });
});
