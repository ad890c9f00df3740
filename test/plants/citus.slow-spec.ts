import { Client } from 'pg';
import { MIGRATIONS } from '../../src/plants/persistence/migrations';
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
  let services: ServiceProcess[];
  let load: Load;
  beforeEach(async () => {
    await createTable();
    services = await Promise.all([1, 2].map(() => home.start({ DATABASE_URL: storeUrl() })));
    load = Load.startCompeting(await Promise.all(services.map((service) => service.url())), 32);
    await until(() => load.withOutcome(200).length > 200);
  });
  afterEach(() => load.stop());

  /** Waits until create requests succeed again, and compares the stored plants with the responses. */
  async function expectNothingLost(): Promise<void> {
    const back = Date.now();
    await until(() => load.hasSucceededSince(back));
    await load.stop();
    await coordinator.end();
    await connect();
    // Prepared transactions of a worker are invisible until this call, which Citus makes periodically.
    await coordinator.query('SELECT recover_prepared_transactions()');
    expectOutcomesMatch(load.creations, await readPostgresPlants(coordinator));
  }

  it('are not ready while a worker is down, and are ready when the worker is back', async () => {
    const count = (outcome: number) => load.withOutcome(outcome).length;
    const statuses = () =>
      Promise.all(services.map((service) => service.getStatus('/health/ready')));
    const findWorker = await disconnectWorker();
    await until(async () => (await statuses()).every((status) => status === 503));
    const rejected = count(errorNumbers.unavailable);
    await until(() => count(errorNumbers.unavailable) > rejected);
    await findWorker();

    await until(async () => (await statuses()).every((status) => status === 200));
    await expectNothingLost();
  });
});
