import { setTimeout } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Client } from 'pg';
import { PostgresPlantsRepository } from '../../src/plants/persistence/postgres/postgres-plants.repository';
import { plantStore } from '../support/plant-store';
import { readPostgresPlants } from '../support/postgres';
import { type ServiceProcess, useServiceHome } from '../support/service-process';
import { until } from '../support/until';
import { brokenPromises, Writers } from '../support/writers';
import { describeRepository } from './repository.contract';

const { CITUS_URL } = process.env;
if (!CITUS_URL) {
  throw new Error('Set CITUS_URL to the coordinator of a Citus cluster that is there for tests.');
}

jest.setTimeout(120_000);

const TABLE =
  'CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text, idempotency_key bytea)';
const KEY = 'ab'.repeat(32);

interface Worker {
  readonly id: string;
  readonly name: string;
  readonly port: number;
}

/** The first one is where the second instance enters, the last one is the one to lose. */
let workers: Worker[] = [];
let schema = 0;
let coordinator: Client;
let worker: Client;

beforeAll(async () => {
  Logger.overrideLogger(false);
  const client = await connect(CITUS_URL);
  ({ rows: workers } = await client.query<Worker>(
    'SELECT nodeid AS id, nodename AS name, nodeport AS port FROM pg_dist_node WHERE groupid > 0',
  ));
  await client.end();
  if (workers.length < 2) throw new Error('The cluster needs two workers.');
});

async function connect(url: string): Promise<Client> {
  const client = new Client(url);
  await client.connect();
  return client;
}

/** Each test has a schema of its own, which is on every node. */
async function makeSchema(): Promise<void> {
  schema++;
  await connectBoth();
  await coordinator.query(`DROP SCHEMA IF EXISTS plants_${schema} CASCADE`);
  await coordinator.query(`CREATE SCHEMA plants_${schema}`);
}

async function connectBoth(): Promise<void> {
  coordinator = await connect(urlOf());
  worker = await connect(urlOf('worker'));
}

async function disconnectBoth(): Promise<void> {
  await coordinator.end();
  await worker.end();
}

async function removeSchema(): Promise<void> {
  // Citus keeps connections for a session, which the test may have terminated.
  await disconnectBoth();
  await connectBoth();
  await coordinator.query(`DROP SCHEMA plants_${schema} CASCADE`);
  await disconnectBoth();
}

async function distribute(table = TABLE): Promise<void> {
  await coordinator.query(table);
  await coordinator.query(
    `SELECT create_distributed_table('plants', 'id', shard_count => ${workers.length})`,
  );
}

/** The URL of a store on a node. */
function urlOf(node: 'coordinator' | 'worker' = 'coordinator'): string {
  const url = new URL(CITUS_URL ?? '');
  const [first] = workers;
  if (node === 'worker' && first) url.host = `${first.name}:${first.port}`;
  url.searchParams.set('options', `-c search_path=plants_${schema}`);
  return url.href;
}

async function value(node: Client, query: string): Promise<unknown> {
  const { rows } = await node.query<unknown[]>({ text: query, rowMode: 'array' });
  return rows[0]?.[0];
}

function lastWorker(): Worker {
  const last = workers.at(-1);
  if (!last) throw new Error('no worker');
  return last;
}

/** An id on a worker, or on another one. */
async function idOn(comparison: '=' | '<>', { name, port }: Worker): Promise<bigint> {
  const id = await value(
    coordinator,
    `SELECT id FROM generate_series(1, 100) AS id JOIN citus_shards
       ON shardid = get_shard_id_for_distribution_column('plants', id)
     WHERE (nodename, nodeport) ${comparison} ('${name}', ${port}) LIMIT 1`,
  );
  return BigInt(String(id));
}

/** Gives the last worker an address where nobody listens, as far as the nodes in use know. */
async function loseWorker(): Promise<() => Promise<void>> {
  const { id, port } = lastWorker();
  const move = async (to: number) => {
    for (const node of [coordinator, worker]) {
      await node.query(`UPDATE pg_dist_node SET nodeport = ${to} WHERE nodeid = ${id}`);
    }
  };
  await move(1);
  return () => move(port);
}

// One instance enters at the coordinator, the other at a worker.
describeRepository('PostgresPlantsRepository', async () => {
  await makeSchema();
  await distribute();
  const repository = await PostgresPlantsRepository.open(urlOf());
  const second = await PostgresPlantsRepository.open(urlOf('worker'));
  return {
    repository,
    second,
    plants: () => readPostgresPlants(coordinator),
    async removePlants() {
      await coordinator.query('TRUNCATE plants');
    },
    async close() {
      await repository.onApplicationShutdown();
      await second.onApplicationShutdown();
      await removeSchema();
    },
  };
});

describe('a store on a Citus cluster', () => {
  beforeEach(makeSchema);
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.onApplicationShutdown();
    await removeSchema();
  });

  const opened: PostgresPlantsRepository[] = [];
  async function open(url = urlOf()): Promise<PostgresPlantsRepository> {
    const repository = await PostgresPlantsRepository.open(url);
    opened.push(repository);
    return repository;
  }
  it('creates no table on any node, says what to run, and goes on after that', async () => {
    const instances = await Promise.all([open(), open(urlOf('worker'))]);
    const errors = await Promise.all(
      instances.map((each) => each.insert({ id: 1n, name: 'Fern' }).catch((error: Error) => error)),
    );
    const tables = await Promise.all(
      [coordinator, worker].map((node) => value(node, "SELECT to_regclass('plants')::text")),
    );

    const reasons = errors.map((error) => ((error as Error).cause as Error).message);
    expect(tables).toEqual([null, null]);
    for (const reason of reasons) {
      expect(reason).toMatch(/Citus cluster.+ Run on the coordinator: .+create_distributed_table/);
    }

    const [, statements = ''] = /Run on the coordinator: (.+)\./.exec(reasons[0] ?? '') ?? [];
    for (const statement of statements.split('; ')) await coordinator.query(statement);
    await until(() => instances.every((each) => each.isReady()));
    const created = await Promise.all(
      instances.map((each) => each.insert({ id: 1n, name: 'Fern' })),
    );
    expect(created.toSorted()).toEqual([false, true]);
  });

  it('brings up an earlier store that was distributed, with one identity on all nodes', async () => {
    await coordinator.query(
      `CREATE TABLE plants_migrations (version integer PRIMARY KEY);
     INSERT INTO plants_migrations VALUES (1)`,
    );
    await distribute(TABLE.replace(', idempotency_key bytea', ''));

    const first = await open();
    const fern = { id: 1n, name: 'Fern' };
    const created = await first.insertOnce(fern, KEY);
    const second = await open(urlOf('worker'));

    expect([created, await second.insertOnce(fern, KEY)]).toEqual(['created', 'replayed']);
    const identity = 'SELECT max(identity::text) FROM plants_migrations WHERE version = 3';
    expect(await value(worker, identity)).toMatch(/^[-\da-f]{36}$/);
    expect(await value(worker, identity)).toBe(await value(coordinator, identity));
  });

  it('leaves the schema of an earlier store to an instance on the coordinator', async () => {
    await distribute(TABLE.replace(', idempotency_key bytea', ''));
    await coordinator.query('CREATE TABLE plants_migrations (version integer PRIMARY KEY)');
    await coordinator.query("SELECT create_reference_table('plants_migrations')");

    const instance = await open(urlOf('worker'));
    expect(instance.isReady()).toBe(false);
    await open();

    await until(() => instance.isReady());
  });

  it('counts what import stored, found present and found in conflict', async () => {
    await distribute();
    const run = async (input: string) => {
      const { code, stderr } = await plantStore(['import'], { DATABASE_URL: urlOf() }, { input });
      return `${code} ${/Stored.+/.exec(stderr)?.[0]}`;
    };
    const lines = Array.from({ length: 1000 }, (_, id) => `{"id":${id},"name":"Fern"}\n`).join('');

    expect([await run(lines), await run(lines), await run('{"id":7,"name":"Moss"}\n')]).toEqual([
      '0 Stored 1000, already present 0, conflicting 0, invalid 0.',
      '0 Stored 0, already present 1000, conflicting 0, invalid 0.',
      '1 Stored 0, already present 0, conflicting 1, invalid 0.',
    ]);
  });

  it('asks only the workers that have the plants of a repetition or a lookup', async () => {
    await distribute();
    const repository = await open();
    const plant = { id: await idOn('<>', lastWorker()), name: 'Fern' };
    await repository.insertOnce(plant, KEY);

    const findWorker = await loseWorker();
    const answers = await Promise.allSettled([
      repository.insertOnce(plant, KEY),
      repository.find(plant.id),
    ]).finally(findWorker);

    expect(answers).toMatchObject([{ value: 'replayed' }, { value: plant }]);
  });

  it('answers 504 when the wait of a worker for its standby is cancelled', async () => {
    await distribute();
    const repository = await open();
    const [first = lastWorker()] = workers;
    const id = await idOn('=', first);
    const reconfigure = async (setting: string) => {
      await worker.query(`ALTER SYSTEM ${setting}`);
      await worker.query('SELECT pg_reload_conf()');
    };
    await reconfigure("SET synchronous_standby_names = 'nobody'");

    let answer: unknown;
    void repository.insert({ id, name: 'Fern' }).then(
      (isNew) => (answer = isNew),
      (error: unknown) => (answer = error),
    );
    const cancel = `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
                  WHERE wait_event = 'SyncRep'`;
    await until(async () => {
      await worker.query(cancel);
      return answer !== undefined;
    }).finally(() => reconfigure('RESET synchronous_standby_names'));

    expect(answer).toMatchObject({ error: 50400 });
  });

  describe('two instances under load, on two nodes,', () => {
    const home = useServiceHome();
    let writers: Writers;
    let services: ServiceProcess[];
    beforeEach(async () => {
      await distribute();
      services = await Promise.all(
        [urlOf(), urlOf('worker')].map((DATABASE_URL) => home.start({ DATABASE_URL })),
      );
      for (const service of services) await service.untilReady();
      writers = new Writers(await Promise.all(services.map((service) => service.url())), 32);
      await until(() => writers.those('acknowledged').length > 200);
    });
    afterEach(() => writers.stop());

    /** Waits until creations succeed again, and compares what is stored with what was answered. */
    async function expectPromises(): Promise<void> {
      const back = Date.now();
      await until(() => writers.hasSucceededSince(back));
      await writers.stop();
      await disconnectBoth();
      await connectBoth();
      // What a worker has prepared is not visible until this, which Citus does from time to time.
      for (const node of [coordinator, worker]) {
        await node.query('SELECT recover_prepared_transactions()');
      }
      expect(brokenPromises(writers.creations, await readPostgresPlants(coordinator))).toEqual({
        lost: [],
        refusedButStored: [],
        acknowledgedTwice: [],
      });
    }

    it('stay ready and refuse most creations at once while a worker is lost', async () => {
      const before = writers.those('unknown').length;
      const findWorker = await loseWorker();
      const since = writers.those('refused').length;
      const readiness = new Set<number>();
      for (let sample = 0; sample < 50; sample++) {
        for (const service of services) readiness.add(await service.statusOf('/health/ready'));
        await setTimeout(100);
      }
      const unknown = writers.those('unknown').length - before;
      const refused = writers.those('refused').length - since;
      await findWorker();

      console.log({ unknown, refused, readiness });
      expect([...readiness]).toEqual([200]);
      expect(refused).toBeGreaterThan(10 * unknown);
      await expectPromises();
    });

    it('lose nothing when the sessions of the workers are terminated', async () => {
      const terminate = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      WHERE application_name LIKE 'citus_internal%' AND pid <> pg_backend_pid()`;
      for (let round = 0; round < 20; round++) {
        await coordinator.query(`SELECT run_command_on_workers($$${terminate}$$)`);
        await setTimeout(100);
      }

      await expectPromises();
    });
  });
});
