import type { DatabaseSync } from 'node:sqlite';
import { assertKnownVersion, MIGRATIONS, migrationsAfter } from '../migrations';

/** Creates or upgrades the table in a transaction that locks out other processes. Returns the version found. */
export function migrate(database: DatabaseSync): number {
  database.exec('BEGIN IMMEDIATE');
  const version = findVersion(database);
  const statements = migrationsAfter(version, 'sqlite');
  database.exec([...statements, `PRAGMA user_version = ${MIGRATIONS.length}`].join(';'));
  database.exec('COMMIT');
  return version;
}

/**
 * Finds the version of the table of a store; 0 if it has none yet.
 * @throws Error when the database has another table of that name, or when a newer version of the service created it
 */
export function findVersion(database: DatabaseSync): number {
  const version = readSchemaVersion(database);
  assertKnownVersion(version);
  const table = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE name COLLATE NOCASE = 'plants' AND type = 'table'")
    .get();
  if (version === 0 && table) {
    throw new Error(
      'it has a table plants without a schema version. Another program created it, or `.dump` of sqlite3, which loses the version: copy a store by `plant-store backup` instead',
    );
  }
  if (version > 0 && !table) throw new Error('it has no table plants');
  return version;
}

export function readSchemaVersion(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version);
}
