import type { DatabaseSync } from 'node:sqlite';
import { assertSchemaVersion, SCHEMA_VERSION } from '../schema-version';

/** The tables of a store, by name. */
const TABLES: Readonly<Record<string, string>> = {
  /**
   * `INTEGER PRIMARY KEY` is SQLite's bigint: 64 bits, and the row's own key instead of a second index.
   * `STRICT` refuses a value of another type, which plain SQLite would convert.
   */
  plants:
    'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT, idempotency_key BLOB) STRICT',
  /** Has one row: the identity by which a running service recognises its store. */
  plants_store: 'CREATE TABLE plants_store (identity TEXT NOT NULL) STRICT',
};

/** What has the name of one of the tables, and the triggers on them. Indexes belong to the operator. */
const FIND_SCHEMA = `
  SELECT type, name, sql FROM sqlite_schema
  WHERE tbl_name COLLATE NOCASE IN ('plants', 'plants_store') AND type <> 'index'`;

/** Makes the tables in a database without them, in one transaction that locks out other processes. */
export function createSchema(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE');
  if (!hasSchema(database)) {
    database.exec(Object.values(TABLES).join(';'));
    database.exec(`INSERT INTO plants_store VALUES (lower(hex(randomblob(16))));
      PRAGMA user_version = ${SCHEMA_VERSION}`);
  }
  database.exec('COMMIT');
}

/**
 * Whether a database has the tables of a store. One without a version and without them has none yet.
 *
 * @throws Error when they are not exactly as {@link createSchema} makes them
 */
export function hasSchema(database: DatabaseSync): boolean {
  const version = readSchemaVersion(database);
  const found = database.prepare(FIND_SCHEMA).all();
  if (version === 0 && found.length === 0) return false;
  assertSchemaVersion(version);
  const foreign = found.find(({ name, sql }) => sql !== TABLES[String(name)]);
  if (foreign) {
    const { type, name } = foreign as { type: string; name: string };
    throw new Error(`its ${type} ${name} is not one that this program makes`);
  }
  const missing = Object.keys(TABLES).find((table) => !found.some(({ name }) => name === table));
  if (missing !== undefined) throw new Error(`it has no table ${missing}`);
  return true;
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
