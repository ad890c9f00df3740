import type { OnApplicationShutdown } from '@nestjs/common';
import type { PostgresOptions } from '../plants.options';
import type { PlantsRepository } from '../plants.repository';
import type * as postgresStore from './postgres/postgres-plants.repository';
import { SqlitePlantsRepository } from './sqlite/sqlite-plants.repository';

/**
 * @param sqlite the file of the SQLite database
 * @param postgres a PostgreSQL database to use instead: its URL, or settings of the driver
 * @throws StoreOpenError when the file or the settings cannot be used
 * @throws Error when the driver of PostgreSQL is not installed
 */
export async function openRepository(
  sqlite: string,
  postgres: string | PostgresOptions | undefined,
): Promise<PlantsRepository & OnApplicationShutdown> {
  if (postgres !== undefined) return loadPostgres().PostgresPlantsRepository.open(postgres);
  return SqlitePlantsRepository.open(sqlite);
}

/** Loads the driver. Hosts that use SQLite need not install it. */
function loadPostgres(): typeof postgresStore {
  try {
    return require('./postgres/postgres-plants.repository') as typeof postgresStore;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw cause;
    throw new Error('The PostgreSQL driver is not installed. Run: npm install pg', { cause });
  }
}
