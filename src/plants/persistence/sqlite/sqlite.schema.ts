import type { SqliteMigration } from './sqlite.protocol';

const PLANTS = 'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT) STRICT';

/**
 * The versions of the SQLite schema: migration N brings a database from `user_version` N to N + 1.
 * A migration that has been released is never changed; a change is a further one.
 *
 * `INTEGER PRIMARY KEY` is SQLite's bigint: 64 bits, and the row's own key instead of a second
 * index. `STRICT` refuses a value of another type, which plain SQLite would convert.
 *
 * `plants_store` has one row: the identity by which a running service recognises its store.
 */
export const sqliteMigrations: readonly SqliteMigration[] = [
  { statements: PLANTS },
  {
    statements: 'ALTER TABLE plants ADD COLUMN idempotency_key BLOB',
    // ALTER TABLE changes no row either, but reads them all when the table is STRICT.
    definition: {
      from: PLANTS,
      to: PLANTS.replace('tag TEXT', 'tag TEXT, idempotency_key BLOB'),
    },
  },
  {
    statements: `CREATE TABLE plants_store (identity TEXT NOT NULL) STRICT;
      INSERT INTO plants_store VALUES (lower(hex(randomblob(16))))`,
  },
];
