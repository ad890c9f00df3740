import type { DatabaseSync } from 'node:sqlite';
import { assertSupportedSchema, describeUpgrade } from '../schema-version';

/** The newest version of the schema, which a file has as its `user_version`. */
export const SCHEMA_VERSION = 3;

/**
 * `INTEGER PRIMARY KEY` is SQLite's bigint: 64 bits, and the row's own key instead of a second index.
 * `STRICT` refuses a value of another type, which plain SQLite would convert.
 */
const CREATE_PLANTS =
  'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT, idempotency_key BLOB) STRICT';

/** Has one row: the identity by which a running service recognises its store. */
const CREATE_STORE = `
  CREATE TABLE plants_store (identity TEXT NOT NULL) STRICT;
  INSERT INTO plants_store VALUES (lower(hex(randomblob(16))))`;

/**
 * Brings the schema to its newest version, in one transaction that locks out other processes.
 *
 * @returns a line for the log if the schema was an earlier version
 */
export function migrateFile(database: DatabaseSync): string | undefined {
  database.exec('BEGIN IMMEDIATE');
  const version = readSchemaVersion(database);
  if (version === 0) database.exec(CREATE_PLANTS);
  if (version === 1) database.exec('ALTER TABLE plants ADD COLUMN idempotency_key BLOB');
  if (version < 3) database.exec(CREATE_STORE);
  database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT`);
  if (version === 0 || version === SCHEMA_VERSION) return undefined;
  return describeUpgrade(version, SCHEMA_VERSION);
}

/** @throws Error when the schema is newer than this program */
export function readSchemaVersion(database: DatabaseSync): number {
  const version = Number(database.prepare('PRAGMA user_version').get()?.user_version);
  assertSupportedSchema(version, SCHEMA_VERSION);
  return version;
}
