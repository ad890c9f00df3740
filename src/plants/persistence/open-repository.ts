import type { PostgresOptions } from '../plants.options';
import type { PlantsRepository } from '../plants.repository';
import { loadDriver } from './load-driver';
import type * as postgresStore from './postgres/postgres-plants.repository';
import { SqlitePlantsRepository } from './sqlite/sqlite-plants.repository';

/**
 * Opens the store of a module.
 *
 * @param sqlite the file of the SQLite database
 * @param postgres a PostgreSQL database to use instead: its URL, or settings of the driver
 * @throws StoreOpenError when the SQLite file cannot be used
 * @throws Error when the settings of PostgreSQL are invalid, or its driver is not installed
 */
export async function openRepository(
  sqlite: string,
  postgres: string | PostgresOptions | undefined,
): Promise<PlantsRepository> {
  if (postgres === undefined) return SqlitePlantsRepository.open(sqlite);
  const { PostgresPlantsRepository } = loadDriver(
    () => require('./postgres/postgres-plants.repository') as typeof postgresStore,
  );
  return PostgresPlantsRepository.open(postgres);
}
