import { Logger } from '@nestjs/common';
import type { PostgresOptions } from '../plants.options';
import { DatabasePlantsRepository } from './database-plants.repository';
import type * as postgresDriver from './postgres/postgres.driver';
import { findUrlError } from './postgres/postgres.url';
import { SqliteDriver } from './sqlite/sqlite.driver';
import { findPathError } from './sqlite/sqlite.settings';
import type { StoreDriver } from './store-driver';

/** Where plants are stored. A function returns the URL as it is now. */
export type StoreLocation =
  { readonly sqlite: string } | { readonly postgres: string | (() => string) | PostgresOptions };

interface StoreKind {
  /** The form of its URLs in `DATABASE_URL`, shown in messages. */
  readonly form: string;
  readonly schemes: readonly string[];
  /** Explains in a sentence that begins with the option why such a URL is invalid; undefined if it is valid. */
  readonly findUrlError: (url: string) => string | undefined;
  /** Returns the location that a valid URL specifies. */
  readonly parseUrl: (url: string) => StoreLocation;
}

const pathOf = (url: string): string => url.slice('sqlite:'.length);

/** Every kind of store, by the name of its option. */
export const STORES = {
  sqlite: {
    form: 'sqlite:PATH',
    schemes: ['sqlite'],
    findUrlError: (url) =>
      findPathError(pathOf(url)) ??
      (url.includes('?') ? 'sqlite must not have parameters after its path.' : undefined),
    parseUrl: (url) => ({ sqlite: pathOf(url) }),
  },
  postgres: {
    form: 'postgres://USER:PASSWORD@HOST:PORT/DATABASE',
    schemes: ['postgres', 'postgresql'],
    findUrlError,
    parseUrl: (url) => ({ postgres: url }),
  },
} satisfies Record<string, StoreKind>;

/**
 * Opens a store. While a PostgreSQL database cannot be used, the repository is not ready and keeps retrying.
 * @throws OptionError when the file or the settings cannot be used
 * @throws Error when the PostgreSQL driver is not installed
 */
export async function openRepository(location: StoreLocation): Promise<DatabasePlantsRepository> {
  const repository = new DatabasePlantsRepository(createDriver(location));
  new Logger('PlantStore').log(`Storing plants in ${repository.name}`);
  await repository.start();
  return repository;
}

function createDriver(location: StoreLocation): StoreDriver {
  if ('sqlite' in location) return new SqliteDriver(location.sqlite);
  return new (loadPostgres().PostgresDriver)(location.postgres);
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
