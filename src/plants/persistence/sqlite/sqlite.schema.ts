import { DatabaseSync } from 'node:sqlite';
import { assertKnownVersion, MIGRATIONS, migrationsAfter } from '../migrations';

/** Has one row: the identity by which a running service recognises its store. */
const IDENTITY_TABLE = 'CREATE TABLE plants_store (identity TEXT NOT NULL) STRICT';

/** What has the name of one of the tables, and the triggers on them. Indexes belong to the operator. */
const FIND_SCHEMA = `
  SELECT type, name, sql FROM sqlite_schema
  WHERE tbl_name COLLATE NOCASE IN ('plants', 'plants_store') AND type <> 'index'`;

/**
 * Creates the tables in a database without them, or upgrades those of an older version, in one transaction
 * that locks out other processes.
 */
export function migrate(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  applyMigrations(database, findVersion(database));
  database.exec('COMMIT');
}

function applyMigrations(database: DatabaseSync, version: number, end = MIGRATIONS.length): void {
  const statements = migrationsAfter(version, 'sqlite').slice(0, end - version);
  if (version === 0) {
    statements.push(IDENTITY_TABLE, 'INSERT INTO plants_store VALUES (lower(hex(randomblob(16))))');
  }
  database.exec([...statements, `PRAGMA user_version = ${end}`].join(';'));
}

/**
 * Finds the version of the tables of a store; 0 if it has none yet.
 *
 * @throws Error when they are not exactly as the migrations make them, or a newer service made them
 */
export function findVersion(database: DatabaseSync): number {
  const version = readSchemaVersion(database);
  assertKnownVersion(version);
  const found = database.prepare(FIND_SCHEMA).all();
  const expected = version === 0 ? [] : schemaOf(version);
  const foreign = found.find(
    ({ name, sql }) => sql !== expected.find((each) => each.name === name)?.sql,
  );
  if (foreign) {
    const { type, name } = foreign as { type: string; name: string };
    throw new Error(`its ${type} ${name} is not as schema version ${version} has it`);
  }
  const missing = expected.find((each) => !found.some(({ name }) => name === each.name));
  if (missing) throw new Error(`it has no table ${String(missing.name)}`);
  return version;
}

/** What the migrations make of an empty database. */
function schemaOf(version: number): Record<string, unknown>[] {
  const database = new DatabaseSync(':memory:');
  applyMigrations(database, 0, version);
  const schema = database.prepare(FIND_SCHEMA).all();
  database.close();
  return schema;
}

export function readSchemaVersion(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version);
}

/** @throws Error when the store does not have exactly one identity */
export function readIdentity(database: DatabaseSync): string {
  const rows = database.prepare('SELECT identity FROM plants_store').all();
  if (rows.length !== 1) throw new Error('its table plants_store must have one row');
  return String(rows[0]?.identity);
}
