import type { ClientBase } from 'pg';

/**
 * The versions of the PostgreSQL schema: statement N brings a database from version N to N + 1. A
 * migration that has been released is never changed; a change is a further one.
 */
const migrations: readonly string[] = [
  'CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text)',
  // Changes the catalogue alone and no row, however large the table is.
  'ALTER TABLE plants ADD COLUMN IF NOT EXISTS idempotency_key bytea',
];

/**
 * Milliseconds that a migration waits for a lock on the table. While it waits behind a long read, a
 * dump for example, all others wait behind it. So it gives up soon, and a later probe tries again.
 */
const LOCK_TIMEOUT = 100;

/** The key of the advisory lock under which the schema is migrated: "plants" in ASCII. */
const LOCK = 0x706c616e7473;

/** What a table can store. */
export interface PlantsTable {
  /** Whether it has the column for idempotency keys. A table of the operator may have none. */
  readonly hasKeys: boolean;
}

/**
 * Brings the schema to its newest version. Any number of instances may do so at once. A table
 * `plants` without a table `plants_migrations` was prepared by the operator (partitioned,
 * distributed) and is not changed.
 *
 * @throws Error when it cannot, or when the schema is newer than this program
 */
export async function migrate(client: ClientBase): Promise<PlantsTable> {
  if ((await readVersion(client)) < migrations.length) await migrateLocked(client);
  const hasKeys = await hasKeyColumn(client);
  // The table may be missing, have other columns, or not be readable for this user.
  const columns = hasKeys ? 'id, name, tag, idempotency_key' : 'id, name, tag';
  await client.query(`SELECT ${columns} FROM plants LIMIT 0`);
  return { hasKeys };
}

async function hasKeyColumn(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query(
    `SELECT 1 FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
     WHERE relname = 'plants' AND pg_table_is_visible(attrelid)
       AND attname = 'idempotency_key' AND atttypid = 'bytea'::regtype AND NOT attisdropped`,
  );
  return rows.length > 0;
}

async function migrateLocked(client: ClientBase): Promise<void> {
  // Each statement must see what others committed while this one waited for the lock.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    await client.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT}`);
    const version = await readVersion(client);
    await client.query(
      'CREATE TABLE IF NOT EXISTS plants_migrations (version integer PRIMARY KEY)',
    );
    for (const [at, migration] of migrations.slice(version).entries()) {
      await client.query(migration);
      await client.query('INSERT INTO plants_migrations VALUES ($1)', [version + at + 1]);
    }
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function readVersion(client: ClientBase): Promise<number> {
  // Not to_regclass(): it may use what the session had cached before it waited for the lock.
  const { rows: tables } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class
     WHERE relname IN ('plants', 'plants_migrations') AND pg_table_is_visible(oid)`,
  );
  const names = tables.map(({ name }) => name);
  if (!names.includes('plants_migrations')) {
    return names.includes('plants') ? migrations.length : 0;
  }

  const { rows } = await client.query<{ version: string | null }>(
    'SELECT max(version)::text AS version FROM plants_migrations',
  );
  const version = Number(rows[0]?.version);
  if (version > migrations.length) {
    throw new Error(
      `the database has schema version ${version}; this program knows ${migrations.length}`,
    );
  }
  return version;
}
