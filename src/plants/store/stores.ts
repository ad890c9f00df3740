import { Logger } from '@nestjs/common';
import type { PostgresOptions } from './postgres/postgres.options';
import { DatabasePlantsRepository } from './database-plants.repository';
import type * as postgresDriver from './postgres/postgres.driver';
import { SqliteDriver } from './sqlite/sqlite.driver';

/** Where plants are stored. A function returns the URL as it is now. */
export type StoreLocation =
  { readonly sqlite: string } | { readonly postgres: string | (() => string) | PostgresOptions };

/**
 * Opens a store. While a PostgreSQL database cannot be used, the repository is not ready and keeps retrying.
 * @throws OptionError when the file or the settings cannot be used
 * @throws Error when the PostgreSQL driver is not installed
 */
export async function openRepository(location: StoreLocation): Promise<DatabasePlantsRepository> {
  const driver =
    'sqlite' in location
      ? new SqliteDriver(location.sqlite)
      : new (loadPostgres().PostgresDriver)(location.postgres);
  const repository = new DatabasePlantsRepository(driver);
  new Logger('PlantStore').log(`Storing plants in ${driver.name}`);
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
