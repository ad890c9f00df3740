import { join } from 'node:path';
import { Client } from 'pg';
import type { Plant } from '../../src/plants';
import type { StoreKind } from '../../src/plants/store/store-location';
import { openRepository } from '../../src/plants/store/stores';
import type { StoreUnderTest } from '../plants/repository.contract';
import { makeFolder, removeFolder } from './folder';
import { PostgresServer, readPostgresPlants } from './postgres';
import { memoryFolder } from './run-folder';
import { execute, query, readPlants } from './sqlite';

/** A real database for the application, which tests can read without the application. */
export interface TestStore {
  readonly kind: StoreKind;
  /** The `DATABASE_URL` for the application. */
  readonly url: string;
  plants(): Plant[] | Promise<Plant[]>;
  removePlants(): void | Promise<void>;
  /** Reads the names of the plants, and a property that this version of the service does not know. */
  readProperty(name: string): Promise<Record<string, unknown>[]>;
  /** Deletes the database. */
  remove(): void | Promise<void>;
}

/** A SQLite file in its own folder. */
export class SqliteStore implements TestStore {
  readonly kind = 'sqlite';
  readonly folder = makeFolder(memoryFolder());
  readonly file = join(this.folder, 'plants.db');
  readonly url = `sqlite:${this.file}`;

  plants(): Plant[] {
    return readPlants(this.file);
  }

  removePlants(): void {
    execute(this.file, 'DELETE FROM plants');
  }

  readProperty(name: string): Promise<Record<string, unknown>[]> {
    return Promise.resolve(query(this.file, `SELECT name, ${name} FROM plants`));
  }

  remove(): void {
    removeFolder(this.folder);
  }
}

/** A PostgreSQL server of its own. */
export class PostgresStore implements TestStore {
  readonly kind = 'postgres';
  readonly url: string;

  private constructor(readonly server: PostgresServer) {
    this.url = server.url();
  }

  static async start(): Promise<PostgresStore> {
    return new PostgresStore(await PostgresServer.start());
  }

  plants(): Promise<Plant[]> {
    return this.server.plants();
  }

  async removePlants(): Promise<void> {
    await this.server.execute('TRUNCATE plants');
  }

  readProperty(name: string): Promise<Record<string, unknown>[]> {
    return this.server.execute(`SELECT name, ${name} FROM plants`);
  }

  remove(): Promise<void> {
    return this.server.remove();
  }
}

type StartStore = () => TestStore | Promise<TestStore>;

const STORES: Record<StoreKind, [name: string, start: StartStore]> = {
  sqlite: ['SQLite', () => new SqliteStore()],
  postgres: ['PostgreSQL', () => PostgresStore.start()],
};

/**
 * The kinds of stores, for `describe.each`: the name, and a function that starts a store. `npm test` needs no
 * PostgreSQL, so it tests SQLite alone.
 */
export const stores = process.env.TEST_STORES === 'all' ? Object.values(STORES) : [STORES.sqlite];

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
