import type { PlantsArchive } from './plants.archive';
import { SqlitePlantsArchive } from './sqlite-plants.archive';

/** A SQLite file, or the connection URL of a PostgreSQL database. */
export type StoreLocation = { readonly sqlite: string } | { readonly postgres: string };

/**
 * Opens a store as an archive.
 *
 * @param use `read` leaves the store as it is and needs it to exist; `write` creates it when missing
 * @throws StoreOpenError when the store cannot be used
 */
export async function openArchive(
  where: StoreLocation,
  use: 'read' | 'write',
): Promise<PlantsArchive> {
  if ('postgres' in where) {
    // It loads the driver.
    const { PostgresPlantsArchive } = await import('./postgres-plants.archive.js');
    return PostgresPlantsArchive.open(where.postgres, use);
  }
  return SqlitePlantsArchive.open(where.sqlite, use);
}
