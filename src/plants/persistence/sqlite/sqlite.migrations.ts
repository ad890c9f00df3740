/**
 * The versions of the SQLite schema: statement N brings a database from `user_version` N to N + 1.
 * A migration that has been released is never changed; a change is a further one.
 *
 * `INTEGER PRIMARY KEY` is SQLite's bigint: 64 bits, and the row's own key instead of a second
 * index. `STRICT` refuses a value of another type, which plain SQLite would convert.
 *
 * `plants_store` has one row: the identity by which a running service recognises its store.
 */
export const sqliteMigrations: readonly string[] = [
  'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT) STRICT',
  // Changes the schema alone and no row, however large the table is.
  'ALTER TABLE plants ADD COLUMN idempotency_key BLOB',
  `CREATE TABLE plants_store (identity TEXT NOT NULL) STRICT;
   INSERT INTO plants_store VALUES (lower(hex(randomblob(16))))`,
];
