import type { Client, PoolConfig } from 'pg';
import { UnavailableError } from '../../src/plants';
import type { DatabasePlantsRepository } from '../../src/plants/store/database-plants.repository';
import { openRepository } from '../../src/plants/store/stores';
import { errorNumbers } from '../support/error-bodies';
import { useLog } from '../support/log';
import { PostgresServer } from '../support/postgres';
import { until } from '../support/until';
import { beforeInsert, replaceStatement, SESSIONS } from './postgres-statements';

/** The number of other plants that a test stores. */
const OTHERS = 300;

/** Selects the sessions of the repository. */
const OWN = `${SESSIONS} AND application_name = 'plant-store'`;

/** Terminates the sessions of the repository. */
const TERMINATE = OWN.replace('pid', 'pg_terminate_backend(pid)');

/** Terminates the session that runs it. */
const TERMINATE_OWN = 'SELECT pg_terminate_backend(pg_backend_pid())';

/**
 * Needs a real PostgreSQL server. While one row, session or setting makes trouble, clients store other plants all the
 * time, several at once. Each test shows that all of these are stored, and that the repository stays ready.
 */
describe('the PostgreSQL repository stores other plants', () => {
  let server: PostgresServer;
  let repository: DatabasePlantsRepository;
  let blocker: Client;
  const { errors } = useLog();
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  beforeEach(async () => {
    repository = await openRepository({ postgres: server.url() });
    await server.execute('TRUNCATE plants');
    blocker = await server.connect();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await blocker.end();
    await repository.onApplicationShutdown();
    await server.execute(
      `DROP FUNCTION IF EXISTS before_insert CASCADE; DROP SEQUENCE IF EXISTS attempts;
       ALTER TABLE plants DROP CONSTRAINT IF EXISTS no_weeds`,
    );
  });
  afterAll(() => server.remove());

  const insert = (id: bigint, name = 'Fern') => repository.insert({ id, name });
  const outcomeOf = (id: bigint, name?: string) =>
    insert(id, name).catch((error: unknown) => error);

  async function reopen(where: PoolConfig): Promise<void> {
    await repository.onApplicationShutdown();
    repository = await openRepository({ postgres: { connectionString: server.url(), ...where } });
  }

  let nextId = 1000n;
  /** Stores other plants by 16 clients until enough are stored and a condition is true. A client that fails ends. */
  async function storeOthers(isDone: () => boolean = () => true): Promise<void> {
    const outcomes: unknown[] = [];
    const readiness = new Set<boolean>();
    const runClient = async (): Promise<void> => {
      while (outcomes.length < OTHERS || !isDone()) {
        const outcome = await outcomeOf(nextId++);
        outcomes.push(outcome);
        readiness.add(repository.isReady());
        if (outcome !== 'created') return;
      }
    };
    await Promise.all(Array.from({ length: 16 }, runClient));
    expect(outcomes.filter((outcome) => outcome !== 'created')).toEqual([]);
    expect([...readiness]).toEqual([true]);
    expect(errors()).toEqual([]);
  }

  /** Runs an action, and stores other plants until it ends. Returns its result. */
  async function whileStoringOthers<T>(action: () => Promise<T>): Promise<T> {
    let isDone = false;
    const result = action().finally(() => {
      isDone = true;
    });
    await storeOthers(() => isDone);
    return result;
  }

  it('while somebody has inserted ids and not committed, and clients retry them', async () => {
    await blocker.query("BEGIN; INSERT INTO plants VALUES (1, 'x'), (2, 'x'), (3, 'x')");

    const retry = async (id: bigint) => [await outcomeOf(id), await outcomeOf(id)];
    const retries = await whileStoringOthers(() => Promise.all([1n, 2n, 3n, 1n].map(retry)));
    const blocked = retries.flat();
    await blocker.query('ROLLBACK');

    expect(blocked).toHaveLength(8);
    for (const error of blocked) {
      expect(error).toBeInstanceOf(UnavailableError);
      expect(String((error as Error).cause)).toContain('lock timeout (55P03)');
    }
    await until(async () => (await outcomeOf(1n)) === 'created');
    expect(await insert(2n)).toBe('created');
  });

  it('while the insert of one plant exceeds the statement_timeout of the operator', async () => {
    await reopen({ statement_timeout: 300 });
    await server.execute(beforeInsert("IF NEW.name = 'slow' THEN PERFORM pg_sleep(60); END IF"));

    const slow = await whileStoringOthers(() => outcomeOf(1n, 'slow'));

    expect(slow).toBeInstanceOf(UnavailableError);
    expect(String((slow as Error).cause)).toContain('statement timeout (57014)');
  });

  it('while sessions are terminated one after the other', async () => {
    const before = new Set((await server.execute(OWN)).map(({ pid }) => pid));
    let lost = 0;
    const outcomes: unknown[] = [];
    const runClient = async (first: bigint): Promise<void> => {
      for (let id = first; lost < 5; id++) outcomes.push(await outcomeOf(id));
    };
    const clients = Array.from({ length: 16 }, (_, at) => runClient(BigInt(at) * 100_000n));
    while (lost < 5) {
      await server.execute(`${TERMINATE} LIMIT 1`);
      await insert(BigInt(-1 - lost)).catch(() => undefined);
      expect(repository.isReady()).toBe(true);
      lost++;
    }
    await Promise.all(clients);

    // Nobody gets 503. A batch in progress has an unknown outcome.
    const failed = outcomes.filter((outcome) => outcome !== 'created') as { error: number }[];
    expect(
      failed.map(({ error }) => error).filter((e) => e !== errorNumbers.outcomeUnknown),
    ).toEqual([]);
    const after = await server.execute(OWN);
    expect(after.length).toBeLessThanOrEqual(5);
    expect(before.size).toBeGreaterThan(0);
  });

  it('while a session is terminated before it is ready for use', async () => {
    const terminated = replaceStatement('pg_attribute', TERMINATE_OWN);
    await server.execute(TERMINATE);
    await until(() => terminated() > 0);

    await storeOthers();

    expect(terminated()).toBe(1);
  });

  it('while the session of a probe is terminated', async () => {
    await server.execute("ALTER TABLE plants ADD CONSTRAINT no_weeds CHECK (name <> 'Weed')");
    const terminated = replaceStatement('SAVEPOINT probe', TERMINATE_OWN);
    await outcomeOf(1n, 'Weed');
    await until(() => terminated() > 0);

    await storeOthers();

    expect(terminated()).toBe(1);
  });

  it.each([
    ['array_nulls', 'off', 'on'],
    ['synchronous_commit', 'off', 'on'],
    ['client_min_messages', 'error', 'notice'],
    ['row_security', 'on', 'off'],
    ['lock_timeout', '0', '1s'],
    ['statement_timeout', '0', '7s'],
  ])('with unchanged settings when a reload sets %s to %s', async (name, value, expected) => {
    await server.execute(
      beforeInsert(`IF current_setting('${name}') <> '${expected}' THEN
        RAISE 'it is %', current_setting('${name}'); END IF`),
    );
    await storeOthers();
    await server.reconfigure(`SET ${name} = '${value}'`);
    await until(async () => {
      const [row] = await server.execute(`SHOW ${name}`);
      return row?.[name] === value;
    });

    await storeOthers();

    await server.reconfigure(`RESET ${name}`);
    const tags = await server.execute('SELECT DISTINCT tag FROM plants');
    expect(tags).toEqual([{ tag: null }]);
  });

  it('with the smaller time-outs of the operator', async () => {
    await reopen({ lock_timeout: 250, statement_timeout: 60_000 });
    await server.execute(
      beforeInsert(
        "NEW.tag := current_setting('lock_timeout') || current_setting('statement_timeout')",
      ),
    );

    await storeOthers();

    expect(await server.execute('SELECT DISTINCT tag FROM plants')).toEqual([{ tag: '250ms7s' }]);
  });

  it('while a statement time-out passes during a commit, which it does not cancel', async () => {
    await reopen({ statement_timeout: 200 });
    await server.reconfigure("SET synchronous_standby_names = 'nobody'");
    const waiting = `${SESSIONS} AND wait_event = 'SyncRep'`;
    let id = 1n;
    let last: Promise<unknown> | undefined;
    // The server applies the new settings after a delay.
    await until(async () => {
      let isSettled = false;
      last = outcomeOf(id++).finally(() => {
        isSettled = true;
      });
      await until(async () => isSettled || (await server.execute(waiting)).length > 0);
      return !isSettled;
    });
    const overdue = `${waiting} AND query_start < clock_timestamp() - interval '1 second'`;
    await until(async () => (await server.execute(overdue)).length > 0);

    await server.reconfigure('RESET synchronous_standby_names');

    expect(await last).toBe('created');
    await until(() => repository.isReady());
  });

  it('while a trigger of the operator warns about each plant', async () => {
    await server.execute(beforeInsert("RAISE WARNING 'a new plant'"));

    await storeOthers();

    expect((await server.plants()).length).toBeGreaterThanOrEqual(OTHERS);
  });

  it('while a plant is skipped and found nowhere, and sends it once more', async () => {
    await server.execute('CREATE SEQUENCE attempts');
    await server.execute(
      beforeInsert("IF NEW.name = 'raced' AND nextval('attempts') = 1 THEN RETURN NULL; END IF"),
    );

    const raced = await whileStoringOthers(() => outcomeOf(1n, 'raced'));

    expect(raced).toBe('created');
  });

  it('while REINDEX CONCURRENTLY runs beside clients that create the same ids', async () => {
    let isDone = false;
    const outcomes: unknown[] = [];
    const runClient = async (): Promise<void> => {
      for (let id = 1n; !isDone; id++) outcomes.push(await outcomeOf(id));
    };
    const racers = Array.from({ length: 8 }, runClient);

    await whileStoringOthers(async () => {
      for (let round = 0; round < 10; round++) {
        await server.execute('REINDEX TABLE CONCURRENTLY plants');
      }
    });
    isDone = true;
    await Promise.all(racers);

    expect(new Set(outcomes)).toEqual(new Set(['created', 'taken']));
  });

  it('while REINDEX CONCURRENTLY reports a duplicate in the index that it builds', async () => {
    await server.execute('CREATE SEQUENCE attempts');
    await server.execute(
      beforeInsert(`IF NEW.name = 'raced' AND nextval('attempts') = 1 THEN
        RAISE unique_violation USING CONSTRAINT = 'plants_pkey_ccnew'; END IF`),
    );

    const raced = await whileStoringOthers(() => outcomeOf(1n, 'raced'));

    expect(raced).toBe('created');
  });

  it('while an application reads thousands of plants at once', async () => {
    await insert(1n);

    const reads = await whileStoringOthers(() =>
      Promise.allSettled(Array.from({ length: 3000 }, () => repository.find(1n))),
    );

    expect(reads.some(({ status }) => status === 'fulfilled')).toBe(true);
    expect((await server.execute(OWN)).length).toBeLessThanOrEqual(8);
  });

  it('while the database rejects every fifth plant', async () => {
    await server.execute("ALTER TABLE plants ADD CONSTRAINT no_weeds CHECK (name <> 'Weed')");

    const rejected = await whileStoringOthers(() =>
      Promise.all(Array.from({ length: OTHERS / 5 }, (_, id) => outcomeOf(BigInt(id), 'Weed'))),
    );

    const expected = { error: errorNumbers.internal, outcome: 'rejected' };
    expect(rejected).toEqual(rejected.map(() => expect.objectContaining(expected) as unknown));
  });
});
