import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { DatabaseSettings } from '../config';
import { SCHEMA_VERSION } from '../plants/persistence/sqlite';
import type { PlantsArchive } from './plants.archive';
import { SqlitePlantsArchive } from './sqlite-plants.archive';
import { checkSqlite, describeSqlite } from './sqlite.maintenance';

/**
 * Opens a store as an archive.
 *
 * @param use `read` leaves the store as it is and needs it to exist; `write` creates it when missing
 * @throws StoreOpenError when the store cannot be used
 */
export async function openArchive(
  where: DatabaseSettings,
  use: 'read' | 'write',
): Promise<PlantsArchive> {
  if ('postgres' in where) {
    // It loads the driver.
    const { PostgresPlantsArchive } = await import('./postgres-plants.archive.js');
    return PostgresPlantsArchive.open(where.postgres, use);
  }
  return SqlitePlantsArchive.open(where.sqlite, use);
}

/**
 * Opens a store for a dry run: `write` says what would be stored, and stores nothing. A SQLite file that
 * does not exist is an empty store.
 *
 * @throws StoreOpenError when the store cannot be used
 */
export async function openForDryRun(
  where: DatabaseSettings,
): Promise<Pick<PlantsArchive, 'write' | 'close'>> {
  const isMissing = 'sqlite' in where && !existsSync(where.sqlite);
  const archive = isMissing ? undefined : await openArchive(where, 'read');
  return {
    write: async (plants) =>
      (await archive?.compare(plants)) ?? { stored: plants.length, present: 0, conflicts: [] },
    close: async () => archive?.close(),
  };
}

/** @throws Error saying why the service cannot use the store */
export async function describeStore(where: DatabaseSettings): Promise<string> {
  if ('postgres' in where) {
    const { PostgresPlantsArchive } = await import('./postgres-plants.archive.js');
    const archive = await PostgresPlantsArchive.open(where.postgres, 'read');
    await archive.close();
    return `PostgreSQL database, which accepts writes and has the table plants. ${archive.stores}`;
  }
  const file = resolve(where.sqlite);
  if (!existsSync(file)) return `SQLite file ${file}, which the service will create`;
  const { version, hasPlants } = describeSqlite(file);
  if (version > 0 && !hasPlants) throw new Error(`${file} has no table plants`);
  const state =
    version === SCHEMA_VERSION ? '' : `, which the service will migrate to ${SCHEMA_VERSION}`;
  return `SQLite file ${file}, schema version ${version}${state}`;
}

/**
 * Reads all that is stored, and describes the result.
 *
 * @throws Error saying what is damaged
 */
export async function readStore(where: DatabaseSettings, signal: AbortSignal): Promise<string> {
  if ('sqlite' in where) {
    const file = resolve(where.sqlite);
    if (!existsSync(file)) return 'there are none';
    await checkSqlite(file, signal);
    return 'the integrity check found no fault';
  }
  const archive = await openArchive(where, 'read');
  let count = 0;
  try {
    for await (const plants of archive.pages()) {
      signal.throwIfAborted();
      count += plants.length;
    }
  } finally {
    await archive.close();
  }
  return `${count} were read`;
}
