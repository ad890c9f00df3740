/** Runs the contract of a repository on PostgreSQL, from npm. */
import { describeRepository } from './repository.contract';
import { PostgresServer } from '../support/postgres';
import { openPostgresStore } from '../support/stores';

let server: PostgresServer;
afterAll(() => server.remove());

describeRepository('The repository on PostgreSQL', async () => {
  server = await PostgresServer.start();
  return openPostgresStore(server.url());
});
