/** Tests the schemas, batches, standbys and settings of PostgreSQL, from npm, beyond the contract of a repository. */
import { hash } from 'node:crypto';
import { Socket } from 'node:net';
import { Client, type ClientConfig, type PoolConfig, types } from 'pg';
import type { DatabasePlantsRepository } from '../../src/plants/store/database-plants.repository';
import { MIGRATIONS } from '../../src/plants/store/migrations';
import { PostgresDriver } from '../../src/plants/store/postgres/postgres.driver';
import { openRepository } from '../../src/plants/store/stores';
import { PlantStoreError, UnavailableError } from '../../src/plants/errors/errors';
import { OptionError } from '../../src/plants/errors/operator.error';
import { errorNumbers } from '../support/error-bodies';
import { useLog } from '../support/log';
import { PostgresServer } from '../support/postgres';
import { until } from '../support/until';
import { beforeInsert, replaceStatement, SESSIONS, TABLE } from './postgres-statements';

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
const log = useLog();
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

  async function untilWaiting(sessions = 1, where = database): Promise<void> {
    await until(async () => (await server.execute(WAITING, where)).length === sessions);
  }

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
         ALTER TABLE plants ADD extra int DEFAULT 7, ALTER tag TYPE varchar;
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

    it.each([
      [
        'has no column for keys',
        `${TABLE}; ALTER TABLE plants DROP idempotency_key`,
        'the column idempotency_key of plants must be bytea, but is missing',
      ],
      ...[
        ['id', 'integer', 'bigint'],
        ['name', 'character varying(70)', 'text'],
        ['idempotency_key', 'text', 'bytea'],
      ].map(([column, type, required]) => [
        `has a column ${column} of the type ${type}`,
        `${TABLE}; ALTER TABLE plants ALTER ${column} TYPE ${type} USING ${column}::text::${type}`,
        `the column ${column} of plants must be ${required}, but is ${type}`,
      ]),
      ['is unlogged', `${TABLE}; ALTER TABLE plants SET UNLOGGED`, 'plants is unlogged'],
      [
        'has an unlogged partition',
        `${TABLE} PARTITION BY RANGE (id);
         CREATE TABLE plants_0 PARTITION OF plants DEFAULT PARTITION BY RANGE (id);
         CREATE UNLOGGED TABLE plants_1 PARTITION OF plants_0 DEFAULT`,
        'plants_1 is unlogged',
      ],
      [
        'has a record that is unlogged',
        `${storeOf(MIGRATIONS.length)}; ALTER TABLE plants_migrations SET UNLOGGED`,
        'plants_migrations is unlogged',
      ],
      [
        'is hidden by a temporary one',
        `CREATE FUNCTION hide() RETURNS event_trigger LANGUAGE plpgsql AS
           $$ BEGIN ${TABLE.replace('TABLE', 'TEMPORARY TABLE')}; END $$;
         CREATE EVENT TRIGGER hide ON login EXECUTE FUNCTION hide()`,
        'plants is temporary',
      ],
      [
        'has a child by inheritance',
        `${TABLE}; CREATE TABLE old_plants () INHERITS (plants)`,
        'the table old_plants inherits from plants, so an id could be stored twice',
      ],
      ['is a view', 'CREATE VIEW plants AS SELECT 1 AS id', 'plants is a view'],
      [
        'is missing, although its record exists',
        `${storeOf(MIGRATIONS.length)}; DROP TABLE plants`,
        'the table plants is missing, although plants_migrations exists',
      ],
      [
        'has another version',
        storeOf(1000),
        `the database has schema version 1000, and this service knows versions up to ${MIGRATIONS.length}`,
      ],
    ])('is not ready while the table %s, and changes nothing', async (_, statements, why) => {
      const damaged = await createDatabase(statements);
      const tables = await tablesOf(damaged);

      await reopen(server.url(damaged));

      expect(repository.currentFailure()?.message).toContain(why);
      expect(await tablesOf(damaged)).toEqual(tables);
    });

    it.each([
      ['synchronous_commit', 'off'],
      ['client_min_messages', 'error'],
      ['array_nulls', 'off'],
    ])('is not ready while the role has %s %s, and ready after a reset', async (name, value) => {
      const role = `role_${database}`;
      await execute(`CREATE ROLE ${role} SUPERUSER LOGIN`);
      await execute(`ALTER ROLE ${role} SET ${name} = ${value}`);
      await reopen(url.replace('postgres@', `${role}@`));

      expect(repository.currentFailure()?.message).toContain(name);
      await execute(`ALTER ROLE ${role} RESET ${name}`);
      await until(() => repository.isReady());
    });

    it.each(['plants', 'plants_migrations'])(
      'is not ready while row level security of %s applies to the role, but if the role is exempt',
      async (table) => {
        const role = `clerk_${database}`;
        await execute(
          `CREATE ROLE ${role} LOGIN; GRANT SELECT, INSERT ON plants, plants_migrations TO ${role};
           ALTER TABLE ${table} ENABLE ROW LEVEL SECURITY`,
        );
        await reopen(url.replace('postgres@', `${role}@`));

        expect(repository.currentFailure()?.message).toContain(`row level security of ${table}`);
        await execute(`ALTER ROLE ${role} BYPASSRLS`);
        await until(() => repository.isReady());
        expect(await insert(1n)).toBe('created');
      },
    );

    it('hides no plant when row level security is enabled later', async () => {
      const role = `clerk_${database}`;
      await execute(
        `CREATE ROLE ${role} LOGIN; GRANT SELECT, INSERT ON plants, plants_migrations TO ${role}`,
      );
      await reopen(url.replace('postgres@', `${role}@`));
      await insert(1n);
      // It opens the session of reads.
      await repository.find(1n);
      await execute('ALTER TABLE plants ENABLE ROW LEVEL SECURITY');

      await expect(repository.find(1n)).rejects.toThrow(UnavailableError);
      await expect(insert(2n)).rejects.toThrow(PlantStoreError);
      await until(() => !repository.isReady());
    });

    it('warns once that fsync is off, and is not ready in production', async () => {
      expect(log.lines.filter((line) => line.includes('fsync is off'))).toHaveLength(1);

      jest.replaceProperty(process.env, 'NODE_ENV', 'production');
      await reopen(url);
      expect(repository.currentFailure()?.message).toContain('fsync is off');
      jest.restoreAllMocks();
      await until(() => repository.isReady());
    });

    it.each(['LATIN1', 'SQL_ASCII'])('is not ready on a database in %s', async (encoding) => {
      const name = encoding.toLowerCase();
      await server.execute(`CREATE DATABASE ${name} ENCODING '${encoding}' TEMPLATE template0`);

      await reopen(server.url(name));

      expect(repository.currentFailure()?.message).toContain(`encoding ${encoding}, `);
      expect(await tablesOf(name)).toEqual([]);
    });
  });

  describe('a batch', () => {
    /** Makes inserts of some rows fail. */
    const raise = (code: string, condition: string) =>
      execute(beforeInsert(`IF ${condition} THEN RAISE 'no' USING ERRCODE = ${code}; END IF`));

    it('is one statement with sorted ids, and one more to find the plants that were not inserted', async () => {
      const sent = jest.spyOn(Client.prototype, 'query');

      await Promise.all([insert(2n), repository.insert(fern, KEY), insert(2n)]);
      const inserts = sent.mock.calls.splice(0);
      await Promise.all([insert(2n), repository.insert(fern, KEY)]);

      expect(inserts).toMatchObject([[{ values: { 0: [1n, 2n] } }]]);
      expect(sent).toHaveBeenCalledTimes(2);
    });

    it('rejects a retry as unavailable when the stored plant cannot be read', async () => {
      await repository.insert(fern, KEY);
      await execute('ALTER FUNCTION encode(bytea, text) RENAME TO missing');

      await expect(repository.insert(fern, KEY)).rejects.toThrow(UnavailableError);
    });

    it('fails only for a plant that violates a constraint of the operator, which the error names', async () => {
      await execute('ALTER TABLE plants ADD CONSTRAINT one_of_each UNIQUE (name)');
      await insert(1n);

      const settled = await Promise.allSettled([
        insert(2n),
        insert(3n, 'Moss'),
        insert(1n, 'Lily'),
        repository.insert({ id: 4n, name: 'Fern' }, KEY),
        insert(4n, 'Rose'),
      ]);

      const rejection = {
        reason: {
          error: errorNumbers.internal,
          cause: { message: expect.stringContaining('"one_of_each" (23505)') as string },
        },
      };
      expect(settled).toMatchObject([
        rejection,
        { value: 'created' },
        { value: 'taken' },
        rejection,
        rejection,
      ]);
      expect(repository.isReady()).toBe(true);
    });

    it('does not report that a plant exists when a trigger skips it', async () => {
      await execute(beforeInsert("IF NEW.name = 'Weed' THEN RETURN NULL; END IF"));

      const settled = await Promise.allSettled([insert(1n), insert(2n, 'Weed')]);

      const rejection = { reason: { error: errorNumbers.internal } };
      expect(settled).toMatchObject([{ value: 'created' }, rejection]);
    });

    const row = errorNumbers.internal;
    const rejected = errorNumbers.unavailable;
    const unknown = errorNumbers.outcomeUnknown;
    it.each([
      ['22023', row, 'alone'],
      ['23514', row, 'alone'],
      ['42501', row, 'alone'],
      ['P0001', row, 'alone'],
      ['UE001', row, 'alone'],
      ['55P03', rejected, 'alone'],
      ['57014', rejected, 'alone'],
      ['40001', rejected, 'with its batch'],
      ['40002', rejected, 'with its batch'],
      ['53100', rejected, 'with its batch'],
      ['42P01', rejected, 'with its batch'],
      ['08006', unknown, 'with its batch'],
      ['XX000', unknown, 'with its batch'],
      ['40003', unknown, 'with its batch'],
    ])('fails with SQLSTATE %s as error %i, %s', async (code, error, extent) => {
      await raise('NEW.name', "NEW.name <> 'Fern'");

      const settled = await Promise.allSettled([insert(1n), insert(2n, code), insert(3n)]);

      const neighbor = extent === 'alone' ? { value: 'created' } : { reason: { error } };
      expect(settled).toMatchObject([neighbor, { reason: { error } }, neighbor]);
    });

    it('sends nothing more after an error that may have ended the session', async () => {
      await raise('NEW.name', "NEW.name <> 'Fern'");

      const names = ['P0001', '08006', '08006', 'Fern'];
      const settled = await Promise.allSettled(names.map((name, id) => insert(BigInt(id), name)));

      expect(settled).toMatchObject([
        { reason: { error: row } },
        { reason: { error: unknown } },
        { reason: { error: rejected } },
        { value: 'created' },
      ]);
      expect(await execute('SELECT name FROM plants')).toEqual([{ name: 'Fern' }]);
    });

    describe('with rejected plants', () => {
      const NO_WEEDS = "ALTER TABLE plants ADD CONSTRAINT no_weeds CHECK (name <> 'Weed')";
      const rejection = { reason: { error: row, outcome: 'rejected' } };

      it('creates the others in one transaction', async () => {
        await execute(NO_WEEDS);
        await execute(beforeInsert('NEW.tag := txid_current()'));

        const names = Array.from({ length: 60 }, (_, id) => (id % 5 === 0 ? 'Weed' : 'Fern'));
        const settled = await Promise.allSettled(names.map((name, id) => insert(BigInt(id), name)));

        expect(settled).toMatchObject(
          names.map((name) => (name === 'Weed' ? rejection : { value: 'created' })),
        );
        expect(await execute('SELECT tag, count(*) FROM plants GROUP BY tag')).toEqual([
          { tag: expect.any(String) as string, count: '48' },
        ]);
      });

      it.each([
        [['Weed', 'Fern', 'Moss'], false],
        [['Weed', 'Weed', 'Moss'], true],
      ])('inserts the batch after %j one by one: %s', async (names, isOneByOne) => {
        await execute(NO_WEEDS);
        await Promise.allSettled(names.map((name, id) => insert(BigInt(id), name)));
        const sent = jest.spyOn(Client.prototype, 'query');

        await Promise.all([insert(4n), insert(5n)]);

        const texts: unknown[] = sent.mock.calls.map(([text]) => text);
        const blocks = texts.filter((text) => typeof text === 'string' && text.includes('DO $$'));
        expect(blocks).toHaveLength(isOneByOne ? 1 : 0);
        expect(await insert(6n)).toBe('created');
        expect(sent.mock.calls.at(-1)).toMatchObject([{ values: { 0: [6n] } }]);
      });

      it('fails only these when the constraint is checked at the commit', async () => {
        await execute(
          `CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN IF NEW.name = 'Weed' THEN RAISE 'no'; END IF; RETURN NULL; END $$;
           CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON plants DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION at_commit()`,
        );

        const names = ['Fern', 'Weed', 'Moss', 'Weed', 'Lily'];
        const settled = await Promise.allSettled(names.map((name, id) => insert(BigInt(id), name)));

        const created = { value: 'created' };
        expect(settled).toMatchObject([created, rejection, created, rejection, created]);
      });

      it('has the right outcomes of taken, repeated and locked plants', async () => {
        await insert(2n);
        await execute(NO_WEEDS);
        const blocker = await server.connect(database);
        await blocker.query("BEGIN; INSERT INTO plants VALUES (5, 'x')");

        const settled = await Promise.allSettled([
          insert(1n, 'Weed'),
          insert(2n),
          repository.insert({ id: 3n, name: 'Fern' }, KEY),
          insert(4n, 'Weed'),
          insert(5n),
          repository.insert({ id: 3n, name: 'Fern' }, KEY),
          insert(6n),
        ]);
        await blocker.end();

        expect(settled).toMatchObject([
          rejection,
          { value: 'taken' },
          { value: 'created' },
          rejection,
          { reason: { error: rejected } },
          { value: 'replayed' },
          { value: 'created' },
        ]);
      });

      it('creates another one that fails in an index which REINDEX CONCURRENTLY builds', async () => {
        await execute(`${NO_WEEDS}; CREATE SEQUENCE attempts`);
        await execute(
          beforeInsert(`IF NEW.name = 'Fern' AND nextval('attempts') = 1 THEN
            RAISE unique_violation USING CONSTRAINT = 'plants_pkey_ccnew'; END IF`),
        );

        const settled = await Promise.allSettled([insert(1n, 'Weed'), insert(2n)]);

        expect(settled).toMatchObject([rejection, { value: 'created' }]);
      });

      it('has unknown outcomes and stores nothing when its session ends before the commit', async () => {
        await execute(NO_WEEDS);
        await execute(
          beforeInsert(
            "IF NEW.name = 'Last' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF",
          ),
        );

        const names = ['Fern', 'Weed', 'Moss', 'Last'];
        const settled = await Promise.allSettled(names.map((name, id) => insert(BigInt(id), name)));

        expect(settled).toMatchObject(names.map(() => ({ reason: { error: unknown } })));
        expect(await execute('SELECT FROM plants')).toEqual([]);
      });

      it('creates the others on a database without PL/pgSQL', async () => {
        await execute(`${NO_WEEDS}; DROP EXTENSION plpgsql`);

        await expectOthersCreated();
      });

      // A statement can be canceled at any time.
      it.each(['BEGIN;', 'SELECT FROM set_config', 'DO $$', 'SELECT current_setting'])(
        'creates the others when %s fails',
        async (start) => {
          await execute(NO_WEEDS);
          const canceled = replaceStatement(start, "DO 'BEGIN RAISE query_canceled; END'");

          await expectOthersCreated();

          expect(canceled()).toBe(1);
        },
      );

      async function expectOthersCreated(): Promise<void> {
        const names = ['Fern', 'Weed', 'Moss'];
        const settled = await Promise.allSettled(names.map((name, id) => insert(BigInt(id), name)));

        expect(settled).toMatchObject([{ value: 'created' }, rejection, { value: 'created' }]);
        const stored = await execute('SELECT name FROM plants ORDER BY id');
        expect(stored).toEqual([{ name: 'Fern' }, { name: 'Moss' }]);
      }
    });

    it.each(['40001', '40P01', '26000', '42P05'])('is retried after SQLSTATE %s', async (code) => {
      await execute('CREATE SEQUENCE attempts');
      await raise(`'${code}'`, "nextval('attempts') < 3");

      expect(await insert(1n)).toBe('created');
    });

    it('succeeds when a proxy removes each prepared statement', async () => {
      await execute(beforeInsert("EXECUTE 'DEALLOCATE ALL'"));

      expect([await insert(1n), await insert(2n), await insert(1n)]).toEqual([
        'created',
        'created',
        'taken',
      ]);
    });
  });

  describe('while the synchronous standby is missing', () => {
    beforeEach(() => server.reconfigure("SET synchronous_standby_names = 'nobody'"));
    afterEach(() => server.reconfigure('RESET synchronous_standby_names'));

    const waiting = `${SESSIONS} AND wait_event = 'SyncRep'`;

    it('does not report success when the wait is canceled', async () => {
      // The server applies the new settings after a delay.
      const insertUntilFailure = async (id: bigint): Promise<unknown> =>
        insert(id).then(() => insertUntilFailure(id + 1n));
      let isSettled = false;
      const failure = insertUntilFailure(1n)
        .catch((error: unknown) => error)
        .finally(() => {
          isSettled = true;
        });

      await until(async () => {
        await execute(waiting.replace('pid', 'pg_cancel_backend(pid)'));
        return isSettled;
      });

      expect(await failure).toMatchObject({
        error: errorNumbers.outcomeUnknown,
        cause: { message: expect.stringContaining('a commit: canceling wait') as string },
      });
    });

    it('is not ready in a session that does not wait for it', async () => {
      // The server applies the new settings after a delay.
      await until(async () => {
        await reopen(`${url}?options=-c%20synchronous_commit%3Dlocal`);
        return !repository.isReady();
      });

      expect(repository.currentFailure()?.message).toContain('synchronous_commit is local');
    });

    it.each<[string, (driver: PostgresDriver) => Promise<unknown>, unknown]>([
      ['confirm a retry', (driver) => driver.commit([{ ...fern, keyDigest: KEY }]), ['replayed']],
      ['end a probe', (driver) => driver.probe(), undefined],
    ])('does not %s before the standby has the plant', async (_what, send, result) => {
      // The table rejects the rows of a probe.
      await execute(
        `SET synchronous_commit = local;
         ALTER TABLE plants ADD UNIQUE (name);
         INSERT INTO plants (id, name, idempotency_key) VALUES (1, 'Fern', '\\x${KEY}')`,
      );
      const driver = new PostgresDriver(url);
      await driver.open(new AbortController().signal, jest.fn());

      let isSettled = false;
      let sent: Promise<unknown> | undefined;
      // The server applies the new settings after a delay.
      await until(async () => {
        isSettled = false;
        sent = send(driver).finally(() => {
          isSettled = true;
        });
        await until(async () => isSettled || (await execute(waiting)).length > 0);
        return !isSettled;
      });
      await server.reconfigure('RESET synchronous_standby_names');

      expect(await sent).toEqual(result);
      await driver.close();
    });
  });

  it('stores plants on a server that cannot wait for standbys again', async () => {
    for (const type of ['text', 'bytea']) {
      const name = `pg_logical_emit_message(boolean, text, ${type}, boolean)`;
      await execute(`ALTER FUNCTION ${name} RENAME TO missing`);
    }
    await reopen(url);

    expect(await insert(1n)).toBe('created');
  });

  describe('with several batches at the same time', () => {
    let blocker: Client;
    beforeEach(async () => {
      blocker = await server.connect(database);
      await blocker.query("BEGIN; INSERT INTO plants VALUES (1, 'x'), (2, 'x'), (3, 'x')");
    });
    afterEach(() => blocker.end());

    it('stores a plant once, and recognizes its repetitions by their key', async () => {
      const { maxBatches } = new PostgresDriver(url);
      const insertions: Promise<unknown>[] = [];
      while (insertions.length < maxBatches) {
        insertions.push(repository.insert(fern, KEY));
        await untilWaiting(insertions.length);
      }

      await blocker.query('ROLLBACK');

      const expected = ['created', ...Array<string>(maxBatches - 1).fill('replayed')];
      expect((await Promise.all(insertions)).toSorted()).toEqual(expected);
    });

    it('fails only the batch whose session is lost, and replaces that session', async () => {
      const insertions: Promise<unknown>[] = [];
      const pids: number[] = [];
      for (const id of [1n, 2n, 3n]) {
        insertions.push(insert(id).catch((error: unknown) => error));
        await untilWaiting(insertions.length);
        const waiting = (await execute(WAITING)).map(({ pid }) => Number(pid));
        pids.push(...waiting.filter((pid) => !pids.includes(pid)));
      }

      await execute(`SELECT pg_terminate_backend(${pids[0]})`);
      expect(await insertions[0]).toMatchObject({ error: errorNumbers.outcomeUnknown });
      expect(repository.isReady()).toBe(true);
      await blocker.query('ROLLBACK');

      expect(await insertions[1]).toBe('created');
      expect(await insertions[2]).toBe('created');
      expect(log.errors()).toEqual([]);
    });
  });

  it('reads plants exactly even if the host program has its own parsers of results', async () => {
    const text = types.getTypeParser(types.builtins.TEXT) as (value: string) => string;
    types.setTypeParser(types.builtins.INT8, Number);
    types.setTypeParser(types.builtins.TEXT, (value) => value.trim());
    const plant = { id: 9_007_199_254_740_993n, name: ' Fern ' };

    const outcomes = [await repository.insert(plant, KEY), await repository.insert(plant, KEY)];
    const found = await repository.find(plant.id);
    types.setTypeParser(types.builtins.TEXT, text);

    expect(outcomes).toEqual(['created', 'replayed']);
    expect(found).toEqual(plant);
  });

  it('leaves no session behind if it is closed while it opens the store', async () => {
    const closing = new AbortController();
    let sessions = 0;
    const stream = () => {
      // The first session prepares the store, and the second one is in the pool.
      if (++sessions === 2) closing.abort(new Error('closed'));
      return new Socket();
    };
    const where = { connectionString: url, application_name: 'closing', stream };

    await expect(new PostgresDriver(where).open(closing.signal, jest.fn())).rejects.toThrow(
      'closed',
    );

    const left = `${SESSIONS} AND application_name = 'closing'`;
    await until(async () => (await execute(left)).length === 0);
  });

  describe('with settings of the driver', () => {
    it.each<ClientConfig>([
      { connectionString: 'postgres://localhost?sslmode=verify-full&sslrootcert=/nowhere' },
      { sslnegotiation: 'direct', ssl: false },
    ])('does not start with %j', async (invalid) => {
      await expect(openRepository({ postgres: invalid })).rejects.toThrow(OptionError);
    });

    it.each<[string, unknown]>([
      ['an Error', new Error('no password today')],
      ['a string', 'no password today'],
    ])(
      'is not ready while a password function throws %s, keeps no sockets open, and calls it again',
      async (_what, reason) => {
        const user = `forgetful_${database}`;
        await server.execute(`CREATE ROLE ${user} LOGIN SUPERUSER PASSWORD 'good'`);
        await server.addAccessRule(`host all ${user} 127.0.0.1/32 scram-sha-256`);
        const password = jest.fn<Promise<string>, []>().mockRejectedValue(reason);
        await reopen({ connectionString: url, user, password });
        await until(() => password.mock.calls.length > 3);

        await expect(insert(1n)).rejects.toMatchObject({
          cause: { message: expect.stringContaining('no password today') as string },
        });
        const starting = "SELECT pid FROM pg_stat_activity WHERE state = 'starting'";
        await until(async () => (await execute(starting)).length <= 1);

        password.mockImplementation(() => Promise.resolve('good'));
        await until(() => repository.isReady());
        expect(await insert(1n)).toBe('created');
      },
    );
  });
});
