import { join } from 'node:path';
import { Client } from 'pg';
import type { Plant } from '../../src/plants';
import { openRepository } from '../../src/plants/persistence/stores';
import type { StoreUnderTest } from '../plants/repository.contract';
import { makeFolder, removeFolder } from './folder';
import { PostgresServer, readPostgresPlants } from './postgres';
import { memoryFolder } from './run-folder';
import { execute, query, readPlants } from './sqlite';

/** A real database for the application, and a way to read it without the application. */
export interface TestStore {
  /** What an operator sets as `DATABASE_URL`. */
  readonly url: string;
  plants(): Plant[] | Promise<Plant[]>;
  removePlants(): void | Promise<void>;
  /** The rows that a statement gives, on a connection of its own. */
  query(statement: string): Promise<Record<string, unknown>[]>;
  /** Removes the database for good. */
  remove(): void | Promise<void>;
}

/** A SQLite file in a folder of its own. */
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

/** Every kind of store, for `describe.each`: its name, and how to start one. */
export const stores: [string, () => TestStore | Promise<TestStore>][] = [
  ['SQLite', (): TestStore => new SqliteStore()],
  ['PostgreSQL', startPostgres],
];

/** @param secondUrl where the second repository enters the same store */
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
