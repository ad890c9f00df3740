import type { PlantsArchive } from '../plants.archive';

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
  // Each loads its driver.
  if ('postgres' in where) {
    const { PostgresPlantsArchive } = await import('./postgres/postgres-plants.archive.js');
    return PostgresPlantsArchive.open(where.postgres, use === 'read');
  }
  const { SqlitePlantsArchive } = await import('./sqlite/sqlite-plants.archive.js');
  return use === 'read'
    ? SqlitePlantsArchive.openForReading(where.sqlite)
    : SqlitePlantsArchive.openForWriting(where.sqlite);
}
