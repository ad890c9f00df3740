import { DatabaseSync } from 'node:sqlite';
import { assertKnownVersion, MIGRATIONS, migrationsAfter } from '../migrations';

/** Finds objects named like our table, and triggers on it. Indexes are the operator's business. */
const FIND_SCHEMA = `
  SELECT type, name, sql FROM sqlite_schema
  WHERE tbl_name COLLATE NOCASE = 'plants' AND type <> 'index'`;

/**
 * Creates the table in a database without it, or upgrades the table of an older version, in one
 * transaction that locks out other processes.
 */
export function migrate(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  applyMigrations(database, findVersion(database));
  database.exec('COMMIT');
}

function applyMigrations(database: DatabaseSync, version: number, end = MIGRATIONS.length): void {
  const statements = migrationsAfter(version, 'sqlite').slice(0, end - version);
  database.exec([...statements, `PRAGMA user_version = ${end}`].join(';'));
}

/**
 * Finds the version of the table of a store; 0 if it has none yet.
 *
 * @throws Error when the table is not exactly as the migrations create it, or when a newer version of the
 *   service created it
 */
export function findVersion(database: DatabaseSync): number {
  const version = readSchemaVersion(database);
  assertKnownVersion(version);
  const found = database.prepare(FIND_SCHEMA).all();
  const expected = version === 0 ? undefined : readTableSql(version);
  const foreign = found.find(({ sql }) => sql !== expected);
  if (foreign) {
    const what = `${String(foreign.type)} ${String(foreign.name)}`;
    throw new Error(`its ${what} does not match schema version ${version}`);
  }
  if (version > 0 && found.length === 0) throw new Error('it has no table plants');
  return version;
}

/** Reads the SQL of the table that the migrations create in an empty database. */
function readTableSql(version: number): unknown {
  const database = new DatabaseSync(':memory:');
  applyMigrations(database, 0, version);
  const sql = database.prepare(FIND_SCHEMA).get()?.sql;
  database.close();
  return sql;
}

export function readSchemaVersion(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version);
}
