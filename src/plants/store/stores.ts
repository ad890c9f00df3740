import { Logger } from '@nestjs/common';
import type { PostgresOptions } from '../plants.options';
import { DatabasePlantsRepository } from './database-plants.repository';
import type * as postgresDriver from './postgres/postgres.driver';
import { findUrlError } from './postgres/postgres.url';
import { SqliteDriver } from './sqlite/sqlite.driver';
import { findPathError } from './sqlite/sqlite.settings';
import type { StoreDriver } from './store-driver';

/** A kind of store, as the settings, the commands and the module use it. */
interface StoreKind<Location> {
  /** The form of its URLs in `DATABASE_URL`, shown in messages. */
  readonly form: string;
  readonly schemes: readonly string[];
  /** Explains in a sentence that begins with the option why such a URL is invalid; undefined if it is valid. */
  readonly findUrlError: (url: string) => string | undefined;
  /** Returns the location that a valid URL specifies. */
  readonly parseUrl: (url: string) => Location;
  /** @throws OptionError when the location cannot be used */
  readonly createDriver: (location: Location) => StoreDriver;
}

const sqlite: StoreKind<string> = {
  form: 'sqlite:PATH',
  schemes: ['sqlite'],
  findUrlError: (url) =>
    findPathError(url.slice('sqlite:'.length)) ??
    (url.includes('?') ? 'sqlite must not have parameters after its path.' : undefined),
  parseUrl: (url) => url.slice('sqlite:'.length),
  createDriver: (path) => new SqliteDriver(path),
};

const postgres: StoreKind<string | (() => string) | PostgresOptions> = {
  form: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE',
  schemes: ['postgres', 'postgresql'],
  findUrlError,
  parseUrl: (url) => url,
  createDriver: (location) => new (loadPostgres().PostgresDriver)(location),
};

/** Every kind of store, by the name of its option. */
export const STORES = { sqlite, postgres };

export type StoreName = keyof typeof STORES;

/** Where plants are stored: one of the options in {@link STORES}, such as `{ sqlite: 'data/plants.db' }`. */
export type StoreLocation = {
  [Name in StoreName]: Readonly<Record<Name, LocationOf<(typeof STORES)[Name]>>>;
}[StoreName];
type LocationOf<Kind> = Kind extends StoreKind<infer Location> ? Location : never;

/**
 * Opens a store. While a PostgreSQL database cannot be used, the repository is not ready and keeps retrying.
 *
 * @throws OptionError when the file or the settings cannot be used
 * @throws Error when the PostgreSQL driver is not installed
 */
export async function openRepository(location: StoreLocation): Promise<DatabasePlantsRepository> {
  // TypeScript cannot pair each kind with its own location, so the cast says that it is always SQLite.
  const [name, value] = Object.entries(location)[0] as ['sqlite', string];
  const repository = new DatabasePlantsRepository(STORES[name].createDriver(value));
  new Logger('PlantStore').log(`Storing plants in ${repository.name}`);
  await repository.start();
  return repository;
}

/** Loads the driver. Hosts that use SQLite need not install it. */
function loadPostgres(): typeof postgresDriver {
  try {
    return require('./postgres/postgres.driver') as typeof postgresDriver;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw cause;
    throw new Error('The PostgreSQL driver is not installed. Run: npm install pg', { cause });
  }
}
