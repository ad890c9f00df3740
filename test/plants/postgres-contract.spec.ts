import { Logger } from '@nestjs/common';
import { describeRepository, describeShortPages } from './repository.contract';
import { PostgresServer } from '../support/postgres';
import { openPostgresStore } from '../support/stores';
import { TABLE } from './postgres-statements';

const servers: PostgresServer[] = [];
beforeAll(() => {
  Logger.overrideLogger(false);
});
afterAll(() => Promise.all(servers.map((server) => server.remove())));

async function start(): Promise<PostgresServer> {
  const server = await PostgresServer.start();
  servers.push(server);
  return server;
}

/** Starts a server whose table is sharded by id over two further servers. */
async function startSharded(): Promise<PostgresServer> {
  const server = await start();
  await server.execute(
    `CREATE EXTENSION postgres_fdw;
     CREATE TABLE plants (id bigint NOT NULL, name text NOT NULL, tag text, idempotency_key bytea)
       PARTITION BY HASH (id)`,
  );
  for (const [at, shard] of [await start(), await start()].entries()) {
    await shard.execute(`${TABLE}; ALTER TABLE plants ADD idempotency_key bytea`);
    await server.execute(
      `CREATE SERVER shard_${at} FOREIGN DATA WRAPPER postgres_fdw
         OPTIONS (host '127.0.0.1', port '${shard.port}', dbname 'postgres');
       CREATE USER MAPPING FOR postgres SERVER shard_${at} OPTIONS (user 'postgres');
       CREATE FOREIGN TABLE plants_${at} PARTITION OF plants
         FOR VALUES WITH (MODULUS 2, REMAINDER ${at})
         SERVER shard_${at} OPTIONS (table_name 'plants')`,
    );
  }
  return server;
}

describe.each([
  ['a table of its own', start],
  ['a table sharded by id over two servers', startSharded],
])('on %s', (_table, startServer) => {
  const open = async () => openPostgresStore((await startServer()).url());
  describeRepository('The repository on PostgreSQL', open);
  describeShortPages('The repository on PostgreSQL', open);
});
