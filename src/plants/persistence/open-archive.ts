import type { PlantsArchive } from '../plants.archive';
import { loadDriver } from './load-driver';
import type * as postgresArchive from './postgres/postgres-plants.archive';
import { SqlitePlantsArchive } from './sqlite/sqlite-plants.archive';

/**
 * Opens a store as an archive.
 *
 * @param where the SQLite file, or the connection URL of a PostgreSQL database
 * @param use `read` leaves the store as it is and needs it to exist; `write` creates it when missing
 * @throws StoreOpenError when the store cannot be used
 */
export async function openArchive(
  where: { readonly sqlite: string } | { readonly postgres: string },
  use: 'read' | 'write',
): Promise<PlantsArchive> {
  if ('postgres' in where) {
    const { PostgresPlantsArchive } = loadDriver(
      () => require('./postgres/postgres-plants.archive') as typeof postgresArchive,
    );
    return PostgresPlantsArchive.open(where.postgres, use === 'read');
  }
  return use === 'read'
    ? SqlitePlantsArchive.openForReading(where.sqlite)
    : SqlitePlantsArchive.openForWriting(where.sqlite);
}
