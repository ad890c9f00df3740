/** Starts newer services on older stores, in SQLite and PostgreSQL: the next schema is one that a test adds. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { hashToken } from '../../src/plants/auth/token-list';
import { digestIdempotencyKey } from '../../src/plants/http/idempotency-key';
import { MIGRATIONS } from '../../src/plants/store/migrations';
import type { StoreKind } from '../../src/plants/store/store-location';
import { openRepository } from '../../src/plants/store/stores';
import { readDatabase } from '../../src/server/settings/database.settings';
import { TOKEN } from '../support/application';
import { createNewerBuild } from '../support/newer-build';
import { plantStore } from '../support/plant-store';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { execute } from '../support/sqlite';
import { type PostgresStore, SqliteStore, stores, type TestStore } from '../support/stores';
import { until } from '../support/until';

const NEWER_VERSION = MIGRATIONS.length + 1;
const ADD_SOIL = 'ALTER TABLE plants ADD COLUMN soil TEXT';
const FERN = '{"id":1,"name":"Fern"}';
const KEY = { 'idempotency-key': 'abc' };
const KEY_DIGEST = digestIdempotencyKey(KEY['idempotency-key'], {
  name: 'token 1',
  tokenDigest: hashToken(TOKEN),
});

/** A migration that does not end. */
const HANGING = {
  sqlite: `${ADD_SOIL}; CREATE TABLE many AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n WHERE x < 0`,
  postgres: `${ADD_SOIL}; SELECT pg_sleep(3600)`,
};
const SLEEPING = "FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
const queryPostgres = (store: TestStore, statement: string) =>
  (store as PostgresStore).server.execute(statement);

interface HangingUpgrade {
  readonly hasBegun: (store: TestStore) => boolean | Promise<boolean>;
  /** Ends what the database still does after the service was killed. */
  readonly end: (store: TestStore) => unknown;
}
const hangingUpgrade: Record<StoreKind, HangingUpgrade> = {
  sqlite: {
    hasBegun: (store) => isLocked((store as SqliteStore).file),
    end: () => undefined,
  },
  postgres: {
    hasBegun: async (store) => (await queryPostgres(store, `SELECT pid ${SLEEPING}`)).length > 0,
    // PostgreSQL detects only at the end of the statement that its client has disconnected.
    end: (store) => queryPostgres(store, `SELECT pg_terminate_backend(pid) ${SLEEPING}`),
  },
};

/** Whether another connection is writing to a SQLite file. */
function isLocked(file: string): boolean {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec('BEGIN IMMEDIATE; ROLLBACK');
    return false;
  } catch {
    return true;
  } finally {
    database.close();
  }
}

const home = useServiceHome();
const newer = () => createNewerBuild({ sqlite: ADD_SOIL, postgres: ADD_SOIL });

/** Creates a store of the current version with a plant and a key, as the service does. */
async function createStore({ url }: Pick<TestStore, 'url'>): Promise<void> {
  const repository = await openRepository(readDatabase({ DATABASE_URL: url }));
  expect(await repository.insert({ id: 1n, name: 'Fern' }, KEY_DIGEST)).toBe('created');
  await repository.onApplicationShutdown();
}

/** Runs statements that create a store as an older version of the service did. */
const createOldStore: Record<StoreKind, (store: TestStore, version: number) => Promise<void>> = {
  sqlite: (store, version) => {
    const { file } = store as SqliteStore;
    const steps = MIGRATIONS.slice(0, version).map(({ sqlite }) => sqlite);
    execute(file, [...steps, `PRAGMA user_version = ${version}`, insertOldPlants("x'")].join(';'));
    return Promise.resolve();
  },
  postgres: async (store, version) => {
    const steps = MIGRATIONS.slice(0, version).map(({ postgres }) => postgres);
    const versions = `CREATE TABLE plants_migrations (version integer PRIMARY KEY, identity uuid);
      INSERT INTO plants_migrations VALUES (${version}, gen_random_uuid())`;
    await queryPostgres(store, [...steps, versions, insertOldPlants("'\\x")].join(';'));
  },
};

/** @param prefix begins the bytes of the idempotency key as a literal of the database */
function insertOldPlants(prefix: string): string {
  return `INSERT INTO plants (id, name, tag, idempotency_key) VALUES
    (-9223372036854775808, 'Moss', NULL, NULL), (1, 'Fern', 'green', ${prefix}${KEY_DIGEST}')`;
}

const OLD_PLANTS = `{"id":-9223372036854775808,"name":"Moss"}
{"id":1,"name":"Fern","tag":"green"}
`;

/** Checks that a service replays the plant by its key and has upgraded the store. */
async function expectUpgraded(service: ServiceProcess, store: TestStore): Promise<void> {
  await service.waitUntilReady();
  expect((await service.post(FERN, KEY)).headers.get('idempotent-replayed')).toBe('true');
  expect(await store.readProperty('soil')).toEqual([{ name: 'Fern', soil: null }]);
}

describe.each(stores)('the start of a newer service on a store in %s', (_name, startStore) => {
  let store: TestStore;
  let environment: NodeJS.ProcessEnv;
  beforeEach(async () => {
    store = await startStore();
    environment = { DATABASE_URL: store.url };
    await createStore(store);
  });
  afterEach(() => store.remove());

  it('upgrades the store and keeps plants and keys; the older service then rejects the store', async () => {
    const service = await home.start(environment, [], newer());

    await expectUpgraded(service, store);
    const upgrade = `from schema version ${MIGRATIONS.length} to ${NEWER_VERSION}.`;
    expect(service.stdout).toContain(upgrade);
    await service.end();
    const older = home.spawn({ ...environment, AUTH_TOKENS: TOKEN });
    const rejection = `schema version ${NEWER_VERSION}, and this service knows versions up to ${MIGRATIONS.length}`;
    await until(() => (older.stdout + older.stderr).includes(rejection));
  });

  it('upgrades the store once when two instances start at the same time', async () => {
    const program = newer();

    const services = await Promise.all([
      home.start(environment, [], program),
      home.start(environment, [], program),
    ]);

    for (const service of services) await expectUpgraded(service, store);
  });

  it('leaves the store unchanged when it is killed during the upgrade; the next start upgrades it', async () => {
    const service = home.spawn(
      { ...environment, AUTH_TOKENS: TOKEN },
      [],
      createNewerBuild(HANGING),
    );
    const { hasBegun, end } = hangingUpgrade[store.kind];
    await until(() => hasBegun(store));

    await service.end('SIGKILL');
    await end(store);

    await expectUpgraded(await home.start(environment, [], newer()), store);
  });
});

describe.each(stores)('a start on an older store in %s', (_name, startStore) => {
  it.each(MIGRATIONS.map((_, at) => at + 1))(
    'keeps the content and the keys of plants with schema version %d',
    async (version) => {
      const store = await startStore();
      await createOldStore[store.kind](store, version);

      const repository = await openRepository(readDatabase({ DATABASE_URL: store.url }));
      const plant = { id: 1n, name: 'Fern', tag: 'green' };
      const replay = await repository.insert(plant, KEY_DIGEST);
      await repository.onApplicationShutdown();
      const { stdout } = await plantStore(['export'], { DATABASE_URL: store.url });
      await store.remove();

      expect(replay).toBe('replayed');
      expect(stdout).toBe(OLD_PLANTS);
    },
  );
});

describe('a backup of an older version', () => {
  it('is restored by the newer version and upgraded at the next start', async () => {
    const store = new SqliteStore();
    const environment = { DATABASE_URL: store.url };
    await createStore(store);
    const copy = join(store.folder, 'copy.db');
    const program = newer();
    expect(await plantStore(['backup', copy], environment)).toMatchObject({ code: 0 });

    const restored = await plantStore(['restore', copy], environment, { program });

    expect(restored).toMatchObject({ code: 0 });
    const check = await plantStore(['check'], { ...environment, AUTH_TOKENS: TOKEN }, { program });
    expect(check.stdout).toContain(
      `schema version ${MIGRATIONS.length}, which the service will upgrade to ${NEWER_VERSION}`,
    );
    await expectUpgraded(await home.start(environment, [], program), store);
    store.remove();
  });
});
