import { describeRepository } from './repository.contract';
import { PostgresServer } from '../support/postgres';
import { openPostgresStore } from '../support/stores';
import { TABLE } from './postgres-statements';

let server: PostgresServer;
let databases = 0;
beforeAll(async () => {
  server = await PostgresServer.start();
});
afterAll(() => server.remove());

describe.each([
  ['a table of its own', ''],
  [
    'a partitioned table',
    `${TABLE} PARTITION BY HASH (id);
     CREATE TABLE plants_0 PARTITION OF plants FOR VALUES WITH (MODULUS 2, REMAINDER 0);
     CREATE TABLE plants_1 PARTITION OF plants FOR VALUES WITH (MODULUS 2, REMAINDER 1)`,
  ],
])('on %s', (_table, preparation) => {
  const open = async () => {
    const database = `plants_${databases++}`;
    await server.execute(`CREATE DATABASE ${database}`);
    await server.execute(preparation, database);
    return openPostgresStore(server.url(database));
  };
  describeRepository('The repository on PostgreSQL', open);
});
