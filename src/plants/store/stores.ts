import { Logger } from '@nestjs/common';
import { DatabasePlantsRepository } from './database-plants.repository';
import type * as postgresDriver from './postgres/postgres.driver';
import { SqliteDriver } from './sqlite/sqlite.driver';
import type { StoreDriver } from './store-driver';
import { matchKind, type StoreLocation } from './store-location';

/**
 * Opens a store. While a PostgreSQL database cannot be used, the repository is not ready and keeps retrying.
 * @throws OptionError when the file or the settings cannot be used
 * @throws Error when the PostgreSQL driver is not installed
 */
export async function openRepository(location: StoreLocation): Promise<DatabasePlantsRepository> {
  const driver = matchKind<StoreDriver>(location, {
    sqlite: (path) => new SqliteDriver(path),
    postgres: (database) => new (loadPostgres().PostgresDriver)(database),
  });
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
