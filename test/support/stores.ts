import { join } from 'node:path';
import { Client } from 'pg';
import type { Plant } from '../../src/plants';
import { openRepository } from '../../src/plants/store/stores';
import type { StoreUnderTest } from '../plants/repository.contract';
import { makeFolder, removeFolder } from './folder';
import { PostgresServer, readPostgresPlants } from './postgres';
import { memoryFolder } from './run-folder';
import { execute, query, readPlants } from './sqlite';

/** A real database for the application, which tests can read without the application. */
export interface TestStore {
  /** The `DATABASE_URL` for the application. */
  readonly url: string;
  plants(): Plant[] | Promise<Plant[]>;
  removePlants(): void | Promise<void>;
  /** Runs a statement on a new connection. Returns the rows. */
  query(statement: string): Promise<Record<string, unknown>[]>;
  /** Deletes the database. */
  remove(): void | Promise<void>;
}

/** A SQLite file in its own folder. */
export class SqliteStore implements TestStore {
  readonly folder = makeFolder(memoryFolder());
  readonly file = join(this.folder, 'plants.db');
  readonly url = `sqlite:${this.file}`;

  plants(): Plant[] {
    return readPlants(this.file);
  }

  removePlants(): void {
    execute(this.file, 'DELETE FROM plants');
  }

  query(statement: string): Promise<Record<string, unknown>[]> {
    return Promise.resolve(query(this.file, statement));
  }

  remove(): void {
    removeFolder(this.folder);
  }
}

async function startPostgres(): Promise<TestStore> {
  const server = await PostgresServer.start();
  return {
    url: server.url(),
    plants: () => server.plants(),
    removePlants: async () => {
      await server.execute('TRUNCATE plants');
    },
    query: (statement) => server.execute(statement),
    remove: () => server.remove(),
  };
}

/**
 * The kinds of stores, for `describe.each`: the name, and a function that starts a store. `npm test` needs no
 * PostgreSQL, so it tests SQLite alone.
 */
export const stores: [string, () => TestStore | Promise<TestStore>][] = [
  ['SQLite', (): TestStore => new SqliteStore()],
];
if (process.env.TEST_STORES === 'all') stores.push(['PostgreSQL', startPostgres]);

/**
 * Opens two repositories on the same PostgreSQL store.
 *
 * @param secondUrl the URL for the second repository
 */
export async function openPostgresStore(url: string, secondUrl = url): Promise<StoreUnderTest> {
  const repository = await openRepository({ postgres: url });
  const second = await openRepository({ postgres: secondUrl });
  const other = new Client(url);
  await other.connect();
  return {
    repository,
    second,
    plants: () => readPostgresPlants(other),
    async removePlants() {
      await other.query('DELETE FROM plants');
    },
    async close() {
      await repository.onApplicationShutdown();
      await second.onApplicationShutdown();
      await other.end();
    },
  };
}
