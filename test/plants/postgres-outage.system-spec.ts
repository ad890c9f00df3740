/** Stops, kills and blocks PostgreSQL, from npm. Readiness and outcomes must tell the truth. */
import { setTimeout } from 'node:timers/promises';
import type { ClientConfig } from 'pg';
import { OutcomeUnknownError, PlantStoreError, UnavailableError } from '../../src/plants';
import type { DatabasePlantsRepository } from '../../src/plants/store/database-plants.repository';
import { openRepository } from '../../src/plants/store/stores';
import { errorNumbers } from '../support/error-bodies';
import { useLog } from '../support/log';
import { PostgresServer } from '../support/postgres';
import { until } from '../support/until';
import { beforeInsert, NOT_BEFORE_INSERT, SESSIONS } from './postgres-statements';

/** Selects the sessions of the repository. */
const OWN = `${SESSIONS} AND application_name = 'plant-store'`;

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

  async function expectRecovery(): Promise<void> {
    await until(() => repository.isReady());
    expect(await insert(1000n)).toBe('created');
    expect(log.at(-1)).toMatch(/^log PostgreSQL at 127.0.0.1:\d+\/\w+: in use again\.$/);
  }

  it('detects loss and recovery of the server without traffic', async () => {
    await server.stop('SIGKILL');
    await until(() => !repository.isReady());

    await expect(insert(1n)).rejects.toThrow(UnavailableError);
    const reason = `connect ECONNREFUSED 127.0.0.1:${server.port}.`;
    await until(() => errors().some((line) => line.endsWith(reason)));
    await server.start();

    await expectRecovery();
  });

  it('replaces sessions that the server closes while they are idle, without a log line', async () => {
    await reopen(`${server.url()}?options=-c%20idle_session_timeout%3D1500`);
    await until(() => repository.isReady());
    const seen = new Set<unknown>();
    const readiness = new Set<boolean>();

    await until(async () => {
      for (const { pid } of await server.execute(OWN)) seen.add(pid);
      readiness.add(repository.isReady());
      return seen.size >= 3;
    });

    expect([...readiness]).toEqual([true]);
    expect(errors()).toEqual([]);
    expect(await insert(1n)).toBe('created');
  });

  it('closes the session of a statement that gets no response, without canceling it', async () => {
    await reopen({ connectionString: server.url(), query_timeout: 300 });
    await server.execute(beforeInsert('IF NEW.id = 1 THEN PERFORM pg_sleep(60); END IF'));

    expect(await outcomeOf(1n)).toBeInstanceOf(OutcomeUnknownError);
    expect(await insert(2n)).toBe('created');
    const sleeping = `${SESSIONS} AND wait_event = 'PgSleep'`;
    expect(await server.execute(sleeping)).toHaveLength(1);
    await server.execute(sleeping.replace('pid', 'pg_terminate_backend(pid)'));
    await server.execute(NOT_BEFORE_INSERT);
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
    const waiting = await server.execute(`${SESSIONS} AND wait_event = 'SyncRep'`);
    // The session of the plant, and possibly that of a probe.
    expect(waiting.length).toBeLessThanOrEqual(2);
    await server.reconfigure('RESET synchronous_standby_names');

    await expectRecovery();
    expect(await server.plants()).toContainEqual({ id: id - 1n, name: 'Fern' });
  });

  describe('without losing a session', () => {
    it.each([
      ['statement_timeout', 'PERFORM pg_sleep(0.2)', '57014'],
      ['an error of each row', "RAISE 'no'", 'P0001'],
    ])(
      'is not ready while every insert fails with %s, until an insert succeeds',
      async (_what, statements, code) => {
        await reopen(`${server.url()}?statement_timeout=100`);
        expect(await insert(1n)).toBe('created');
        await server.execute(beforeInsert(statements));

        expect(await outcomeOf(2n)).toBeInstanceOf(PlantStoreError);
        await until(() => !repository.isReady());

        expect(errors().at(-1)).toContain(code);
        const { length } = errors();
        // Probes without traffic have the same result.
        await setTimeout(1500);
        expect(repository.isReady()).toBe(false);
        expect(errors()).toHaveLength(length);
        await server.execute(NOT_BEFORE_INSERT);

        await expectRecovery();
        expect((await server.plants()).map(({ id }) => id)).toEqual([1n, 1000n]);
      },
    );

    it('stays ready while the table rejects some rows and those of a probe, but not without its rights', async () => {
      // These privileges are sufficient for an insert and for a probe.
      await server.execute(
        `CREATE ROLE clerk LOGIN PASSWORD 'good'; GRANT SELECT ON plants, plants_migrations TO clerk;
         GRANT INSERT ON plants TO clerk`,
      );
      await server.addAccessRule('host all clerk 127.0.0.1/32 scram-sha-256');
      await reopen(server.url().replace('postgres@', 'clerk:good@'));
      expect(await insert(999n)).toBe('created');
      await server.execute(beforeInsert("IF NEW.name <> 'Fern' THEN RAISE 'no'; END IF"));
      for (let id = 0n; id < 50n; id += 2n) {
        const weed = repository.insert({ id, name: 'Weed' });
        await expect(weed).rejects.toMatchObject({ error: errorNumbers.internal });
        expect(await insert(id + 1n)).toBe('created');
      }
      expect(errors()).toEqual([]);

      const endSessions = OWN.replace('pid', 'pg_terminate_backend(pid)');
      for (const [fault, code, remedy] of [
        ['REVOKE INSERT ON plants FROM clerk', '42501', 'GRANT INSERT ON plants TO clerk'],
        ['ALTER ROLE clerk CONNECTION LIMIT 0', '53300', 'ALTER ROLE clerk CONNECTION LIMIT 9'],
        ["ALTER ROLE clerk PASSWORD 'other'", '28P01', "ALTER ROLE clerk PASSWORD 'good'"],
      ] as const) {
        await server.execute(`${fault}; ${endSessions}`);
        await outcomeOf(2n);
        await until(() => !repository.isReady() && errors().join().includes(`(${code}).`));
        await server.execute(`${remedy}; DELETE FROM plants WHERE id = 1000`);
        await expectRecovery();
      }
      expect(errors().join()).not.toContain('good');
      await server.execute(`${NOT_BEFORE_INSERT}; DROP OWNED BY clerk; DROP ROLE clerk`);
    });

    it('leaves no session waiting for a lock when the store is probed', async () => {
      await reopen({ connectionString: server.url(), query_timeout: 2500 });
      const locker = await server.connect();
      await locker.query('BEGIN; LOCK TABLE plants IN SHARE MODE');
      await outcomeOf(1n);
      await until(() => errors().some((line) => line.includes('(55P03)')));

      await setTimeout(4000);
      const waiting = await server.execute(`${SESSIONS} AND wait_event_type = 'Lock'`);
      // The session of the plant, and possibly that of a probe.
      expect(waiting.length).toBeLessThanOrEqual(2);
      await locker.query('ROLLBACK');
      await locker.end();

      await expectRecovery();
    });
  });
});
