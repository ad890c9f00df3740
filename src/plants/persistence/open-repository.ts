import { Logger } from '@nestjs/common';
import type { PostgresOptions } from '../plants.options';
import { CommittingPlantsRepository } from './committing-plants.repository';
import type * as postgresDriver from './postgres/postgres.driver';
import { SqliteDriver } from './sqlite/sqlite.driver';

/**
 * @param sqlite the file of the SQLite database
 * @param postgres a PostgreSQL database to use instead: its URL, or settings of the driver. If it cannot
 *   be used, the repository is not ready, and keeps trying.
 * @throws StoreOpenError when the file or the settings cannot be used
 * @throws Error when the driver of PostgreSQL is not installed
 */
export async function openRepository(
  sqlite: string,
  postgres?: string | PostgresOptions,
): Promise<CommittingPlantsRepository> {
  const repository = new CommittingPlantsRepository((health) =>
    postgres === undefined
      ? new SqliteDriver(sqlite, health)
      : new (loadPostgres().PostgresDriver)(postgres, health),
  );
  new Logger('PlantStore').log(`Plants are stored in ${repository.name}`);
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
