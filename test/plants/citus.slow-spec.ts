/**
 * Runs the contract of a repository, and two services, on a Citus cluster with a distributed table. Needs CITUS_URL.
 */
import { Client } from 'pg';
import { MIGRATIONS } from '../../src/plants/store/migrations';
import { errorNumbers } from '../support/error-bodies';
import { expectOutcomesMatch, Load } from '../support/load';
import { readPostgresPlants } from '../support/postgres';
import { useServiceHome } from '../support/service-process';
import { openPostgresStore } from '../support/stores';
import { until } from '../support/until';
import { describeRepository } from './repository.contract';

const { CITUS_URL = '' } = process.env;
if (CITUS_URL === '') {
  throw new Error('Set CITUS_URL to a coordinator with two workers or more, for tests alone.');
}

let coordinator: Client;
beforeAll(connect);
afterAll(() => coordinator.end());

/** Returns the URL of the store: a schema that only this test uses. */
function storeUrl(): string {
  const url = new URL(CITUS_URL);
  url.searchParams.set('options', '-c search_path=plants_test');
  return url.href;
}

async function connect(): Promise<void> {
  coordinator = new Client(storeUrl());
  await coordinator.connect();
}

/** Creates the table by the two statements of docs/citus.md. */
async function createTable(): Promise<void> {
  await coordinator.query('DROP SCHEMA IF EXISTS plants_test CASCADE; CREATE SCHEMA plants_test');
  await coordinator.query(MIGRATIONS.map(({ postgres }) => postgres).join('; '));
  await coordinator.query("SELECT create_distributed_table('plants', 'id', shard_count => 2)");
}

/** Makes the coordinator use a port of a worker where nothing listens. Returns a function that undoes this. */
async function disconnectWorker(): Promise<() => Promise<unknown>> {
  const { rows } = await coordinator.query<{ nodeid: number; nodeport: number }>(
    'SELECT nodeid, nodeport FROM pg_dist_node WHERE groupid > 0 ORDER BY nodeid DESC LIMIT 1',
  );
  const setPort = (port = 1) =>
    coordinator.query('UPDATE pg_dist_node SET nodeport = $1 WHERE nodeid = $2', [
      port,
      rows[0]?.nodeid,
    ]);
  await setPort();
  return () => setPort(rows[0]?.nodeport);
}

describeRepository('The repository on PostgreSQL', async () => {
  await createTable();
  return openPostgresStore(storeUrl());
});

describe('two instances on a Citus cluster under load', () => {
  const home = useServiceHome();

  it('are not ready while a worker is down, are ready when it is back, and lose no acknowledged plant', async () => {
    await createTable();
    const DATABASE_URL = storeUrl();
    const services = [await home.start({ DATABASE_URL }), await home.start({ DATABASE_URL })];
    const urls = await Promise.all(services.map((service) => service.url()));
    const load = Load.startCompeting(urls, 32);
    await until(() => load.withOutcome(200).length > 200);
    const areReady = async (status: number) => {
      const ready = await Promise.all(services.map((each) => each.getStatus('/health/ready')));
      return ready.every((found) => found === status);
    };
    const rejected = () => load.withOutcome(errorNumbers.unavailable).length;

    const findWorker = await disconnectWorker();
    await until(() => areReady(503));
    const before = rejected();
    await until(() => rejected() > before);
    await findWorker();
    await until(() => areReady(200));
    const back = Date.now();
    await until(() => load.hasSucceededSince(back));
    await load.stop();

    await coordinator.end();
    await connect();
    // Prepared transactions of a worker are invisible until this call, which Citus makes periodically.
    await coordinator.query('SELECT recover_prepared_transactions()');
    expectOutcomesMatch(load.creations, await readPostgresPlants(coordinator));
  });
});
