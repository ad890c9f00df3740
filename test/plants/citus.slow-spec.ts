import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Client } from 'pg';
import type { DatabasePlantsRepository } from '../../src/plants/persistence/database-plants.repository';
import { MIGRATIONS } from '../../src/plants/persistence/migrations';
import { openRepository } from '../../src/plants/persistence/stores';
import { errorNumbers } from '../support/error-bodies';
import { expectOutcomesMatch, Load } from '../support/load';
import { readPostgresPlants } from '../support/postgres';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { openPostgresStore } from '../support/stores';
import { until } from '../support/until';
import { describeRepository } from './repository.contract';

const { CITUS_URL = '' } = process.env;
if (CITUS_URL === '') {
  throw new Error('Set CITUS_URL to a coordinator with two workers or more, for tests alone.');
}

const TABLE = MIGRATIONS.map(({ postgres }) => postgres).join('; ');
const VERSIONS = `CREATE TABLE plants_migrations (version integer PRIMARY KEY, identity uuid);
  INSERT INTO plants_migrations VALUES (${MIGRATIONS.length}, gen_random_uuid())`;
const IDENTITY = 'SELECT identity::text FROM plants_migrations WHERE identity IS NOT NULL';
const KEY = 'ab'.repeat(32);

/** The addresses of the workers. The second instance connects to the first one. The last one is made unreachable. */
let workers: string[] = [];
let coordinator: Client;
let worker: Client;

beforeAll(async () => {
  Logger.overrideLogger(false);
  await connectAll();
});
afterAll(disconnectAll);

/** Returns the URL of a store at one of the nodes, in a schema that exists on every node. */
function urlOf(entry = new URL(CITUS_URL).host): string {
  const url = new URL(CITUS_URL);
  url.searchParams.set('options', '-c search_path=plants_test');
  return url.href.replace(url.host, entry);
}

/** Returns the URLs of two instances: the coordinator, and a worker, as a load balancer may choose it. */
function urlsOfBoth(): string[] {
  return [urlOf(), urlOf(workers[0])];
}

async function connect(address?: string): Promise<Client> {
  const client = new Client(urlOf(address));
  await client.connect();
  return client;
}

async function connectAll(): Promise<void> {
  coordinator = await connect();
  const { rows } = await coordinator.query<{ address: string }>(
    `SELECT nodename || ':' || nodeport AS address FROM pg_dist_node
     WHERE groupid > 0 ORDER BY nodeid`,
  );
  workers = rows.map(({ address }) => address);
  worker = await connect(workers[0]);
}

async function disconnectAll(): Promise<void> {
  await coordinator.end();
  await worker.end();
}

async function makeSchema(): Promise<void> {
  await coordinator.query('DROP SCHEMA IF EXISTS plants_test CASCADE');
  await coordinator.query('CREATE SCHEMA plants_test');
}

async function distribute(table = TABLE): Promise<void> {
  await coordinator.query(table);
  await coordinator.query(
    `SELECT create_distributed_table('plants', 'id', shard_count => ${workers.length})`,
  );
}

async function value(node: Client, query: string): Promise<unknown> {
  const { rows } = await node.query<unknown[]>({ text: query, rowMode: 'array' });
  return rows[0]?.[0];
}

/** Finds the id of a plant that a worker would store. */
async function findIdOn(address = ''): Promise<bigint> {
  const id = await value(
    coordinator,
    `SELECT id::text FROM generate_series(1, 100) AS id JOIN citus_shards
       ON shardid = get_shard_id_for_distribution_column('plants', id)
     WHERE nodename || ':' || nodeport = '${address}' LIMIT 1`,
  );
  return BigInt(id as string);
}

/** Makes the other nodes use a port of the last worker where nothing listens. */
async function disconnectWorker(): Promise<() => Promise<void>> {
  const [name, port] = workers.at(-1)?.split(':') ?? [];
  const move = async (from: string, to: string) => {
    const where = `nodename = '${name}' AND nodeport = ${from}`;
    for (const node of [coordinator, worker]) {
      await node.query(`UPDATE pg_dist_node SET nodeport = ${to} WHERE ${where}`);
    }
  };
  await move(port ?? '', '1');
  return () => move('1', port ?? '');
}

describeRepository('The repository on PostgreSQL', async () => {
  await makeSchema();
  await distribute();
  return openPostgresStore(urlOf(), urlOf(workers[0]));
});

describe('a store on a Citus cluster', () => {
  const opened: DatabasePlantsRepository[] = [];
  beforeEach(makeSchema);
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.onApplicationShutdown();
  });

  async function open(url = urlOf()): Promise<DatabasePlantsRepository> {
    const repository = await openRepository({ postgres: url });
    opened.push(repository);
    return repository;
  }

  it('is not ready on any node until the table is distributed, and logs the statements for that', async () => {
    const plant = { id: 1n, name: 'Fern' };
    const instances = await Promise.all(urlsOfBoth().map(open));
    const reasons = await Promise.all(
      instances.map((each) =>
        each.insert(plant).catch((error: unknown) => String((error as Error).cause)),
      ),
    );
    expect(await value(coordinator, "SELECT to_regclass('plants')::text")).toBeNull();
    expect(await value(worker, "SELECT to_regclass('plants')::text")).toBeNull();
    expect(reasons[1]).toMatch(/Citus cluster.+ Run on the coordinator: /);

    const [, statements = ''] = /coordinator: (.+)\./.exec(String(reasons[0])) ?? [];
    for (const statement of statements.split('; ')) await coordinator.query(statement);
    await until(() => instances.every((each) => each.isReady()));
    const created = await Promise.all(instances.map((each) => each.insert(plant)));
    expect(created.toSorted()).toEqual(['created', 'taken']);
  });

  it.each([
    ['a local table', false],
    ['a reference table', true],
  ])(
    'has its version in %s, which every node reads from the coordinator',
    async (_table, isReference) => {
      await distribute();
      await coordinator.query(VERSIONS);
      if (isReference) {
        await value(coordinator, "SELECT create_reference_table('plants_migrations')");
      }
      expect((await open(urlOf(workers[0]))).isReady()).toBe(true);

      const plant = { id: 1n, name: 'Fern' };
      const created = await (await open()).insert(plant, KEY);
      const repeated = await (await open(urlOf(workers[0]))).insert(plant, KEY);

      expect([created, repeated]).toEqual(['created', 'replayed']);
      expect(await value(worker, IDENTITY)).toMatch(/^[-\da-f]{36}$/);
      expect(await value(worker, IDENTITY)).toBe(await value(coordinator, IDENTITY));
    },
  );

  it('queries only the worker of the plant for a retry and a lookup', async () => {
    await distribute();
    const repository = await open();
    const plant = { id: await findIdOn(workers[0]), name: 'Fern' };
    await repository.insert(plant, KEY);

    const findWorker = await disconnectWorker();
    const responses = await Promise.allSettled([
      repository.insert(plant, KEY),
      repository.find(plant.id),
    ]).finally(findWorker);

    expect(responses).toMatchObject([{ value: 'replayed' }, { value: plant }]);
  });

  it('does not acknowledge a plant when a worker does not wait for its standby', async () => {
    await distribute();
    const repository = await open();
    const reconfigure = async (setting: string) => {
      await worker.query(`ALTER SYSTEM ${setting}`);
      await worker.query('SELECT pg_reload_conf()');
    };
    await reconfigure("SET synchronous_standby_names = 'nobody'");

    let isSettled = false;
    const response = repository.insert({ id: await findIdOn(workers[0]), name: 'Fern' });
    const error = response.catch((reason: unknown) => reason).finally(() => (isSettled = true));
    await until(async () => {
      await worker.query(
        "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
      );
      return isSettled;
    }).finally(() => reconfigure('RESET synchronous_standby_names'));

    expect(await error).toMatchObject({ error: errorNumbers.outcomeUnknown });
  });

  describe('with two instances under load on two nodes', () => {
    const home = useServiceHome();
    let services: ServiceProcess[];
    let load: Load;
    beforeEach(async () => {
      await distribute();
      services = await Promise.all(
        urlsOfBoth().map((DATABASE_URL) => home.start({ DATABASE_URL })),
      );
      load = Load.startCompeting(await Promise.all(services.map((service) => service.url())), 32);
      await until(() => load.withOutcome(200).length > 200);
    });
    afterEach(() => load.stop());

    /** Waits until create requests succeed again, and compares the stored plants with the responses. */
    async function expectNothingLost(): Promise<void> {
      const back = Date.now();
      await until(() => load.hasSucceededSince(back));
      await load.stop();
      // Sessions keep connections to workers, some of which may have been terminated.
      await disconnectAll();
      await connectAll();
      // Prepared transactions of a worker are invisible until this call, which Citus makes periodically.
      for (const node of [coordinator, worker]) {
        await node.query('SELECT recover_prepared_transactions()');
      }
      expectOutcomesMatch(load.creations, await readPostgresPlants(coordinator));
    }

    it('is not ready and rejects plants immediately while a worker is down, and is ready when the worker is back', async () => {
      const count = (outcome: number) => load.withOutcome(outcome).length;
      const statuses = () =>
        Promise.all(services.map((service) => service.getStatus('/health/ready')));
      const unknown = count(errorNumbers.outcomeUnknown);
      const findWorker = await disconnectWorker();
      await until(async () => (await statuses()).every((status) => status === 503));
      const [stillUnknown, rejected] = [
        count(errorNumbers.outcomeUnknown),
        count(errorNumbers.unavailable),
      ];
      const readiness = new Set<number>();
      for (let sample = 0; sample < 50; sample++) {
        for (const status of await statuses()) readiness.add(status);
        await setTimeout(100);
      }
      const log = services.map(({ stdout }) => stdout);
      await findWorker();

      expect([...readiness]).toEqual([503]);
      expect(stillUnknown).toBeGreaterThan(unknown);
      expect(count(errorNumbers.unavailable)).toBeGreaterThan(rejected);
      for (const each of log) expect(each).toContain('(08006)');
      await until(async () => (await statuses()).every((status) => status === 200));
      await expectNothingLost();
    });

    it('loses nothing when the sessions of all nodes are terminated', async () => {
      const terminate = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name ~ 'citus_internal|plant-store' AND pid <> pg_backend_pid()`;
      for (let round = 0; round < 20; round++) {
        await coordinator.query(`SELECT run_command_on_all_nodes($$${terminate}$$)`);
        await setTimeout(100);
      }

      await expectNothingLost();
    });
  });
});
