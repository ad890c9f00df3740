import { Logger } from '@nestjs/common';
import { describeRepository } from './repository.contract';
import { PostgresServer } from '../support/postgres';
import { openPostgresStore } from '../support/stores';

let server: PostgresServer;
let databases = 0;
beforeAll(async () => {
  Logger.overrideLogger(false);
  server = await PostgresServer.start();
});
afterAll(() => server.remove());

/** The contract of a repository, in a database that is emptied after each test. */
function describeOn(
  table: string,
  prepare: (database: string) => Promise<void>,
  options?: Parameters<typeof describeRepository>[2],
): void {
  describe(`on ${table}`, () => {
    let url: string;
    beforeAll(async () => {
      const database = `plants_${++databases}`;
      await server.execute(`CREATE DATABASE ${database}`);
      await prepare(database);
      url = server.url(database);
    });

    describeRepository('PostgresPlantsRepository', () => openPostgresStore(url), options);
  });
}

describeOn('a table of its own', () => Promise.resolve());

describe('with two further servers', () => {
  let shards: PostgresServer[];
  beforeAll(async () => {
    shards = [await PostgresServer.start(), await PostgresServer.start()];
  });
  afterAll(() => Promise.all(shards.map((shard) => shard.remove())));

  describeOn('a table sharded by id over them', async (database) => {
    await server.execute(
      `CREATE EXTENSION postgres_fdw;
       CREATE TABLE plants (id bigint NOT NULL, name text NOT NULL, tag text, idempotency_key bytea)
         PARTITION BY HASH (id)`,
      database,
    );
    for (const [at, shard] of shards.entries()) {
      await shard.execute(
        `CREATE TABLE plants
           (id bigint PRIMARY KEY, name text NOT NULL, tag text, idempotency_key bytea)`,
      );
      await server.execute(
        `CREATE SERVER shard_${at} FOREIGN DATA WRAPPER postgres_fdw
           OPTIONS (host '127.0.0.1', port '${shard.port}', dbname 'postgres');
         CREATE USER MAPPING FOR postgres SERVER shard_${at} OPTIONS (user 'postgres');
         CREATE FOREIGN TABLE plants_${at} PARTITION OF plants
           FOR VALUES WITH (MODULUS 2, REMAINDER ${at})
           SERVER shard_${at} OPTIONS (table_name 'plants')`,
        database,
      );
    }
  });
});

describeOn(
  "an operator's table without keys",
  async (database) => {
    await server.execute(
      'CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text)',
      database,
    );
  },
  { keepsKeys: false },
);
