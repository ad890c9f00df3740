import type { ClientBase } from 'pg';
import { assertSupportedSchema } from '../store-open.error';

/**
 * The versions of the PostgreSQL schema: statement N brings a database from version N to N + 1. A
 * migration that has been released is never changed; a change is a further one.
 *
 * The `identity` beside version 1 is that of the store, by which a running service recognises it.
 */
const migrations: readonly string[] = [
  'CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text)',
  // Changes the catalogue alone and no row, however large the table is.
  'ALTER TABLE plants ADD COLUMN IF NOT EXISTS idempotency_key bytea',
  `ALTER TABLE plants_migrations ADD COLUMN identity uuid;
   UPDATE plants_migrations SET identity = gen_random_uuid() WHERE version = 1`,
];

/**
 * Milliseconds that a migration waits for a lock on the table. While it waits behind a long read, a
 * dump for example, all others wait behind it. So it gives up soon, and a later probe tries again.
 */
const LOCK_TIMEOUT = 100;

/** The key of the advisory lock under which the schema is migrated: "plants" in ASCII. */
const LOCK = 0x706c616e7473;

/** The table that plants are stored in. */
export interface PlantsTable {
  /** Whether it has the column for idempotency keys. A table of the operator may have none. */
  readonly hasKeys: boolean;
  /** The identity of the store; undefined for a table that the operator has prepared. */
  readonly identity: string | undefined;
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
  return readTable(client);
}

/** @throws Error when the table is missing, has other columns, or is not readable for this user */
async function readTable(client: ClientBase): Promise<PlantsTable> {
  const hasKeys = await hasKeyColumn(client);
  const columns = hasKeys ? 'id, name, tag, idempotency_key' : 'id, name, tag';
  await client.query(`SELECT ${columns} FROM plants LIMIT 0`);
  const tables = await readTables(client);
  const identity = tables.includes('plants_migrations') ? await readIdentity(client) : undefined;
  return { hasKeys, identity };
}

/**
 * Changes nothing in the database.
 *
 * @param identity what {@link migrate} returned when the store was first used
 * @throws Error when the database is not that store, or its table cannot be used
 */
export async function assertSameStore(
  client: ClientBase,
  identity: string | undefined,
): Promise<PlantsTable> {
  if (!(await readTables(client)).includes('plants')) throw otherStore('it has no table plants');
  const version = await readVersion(client);
  if (version < migrations.length) throw otherStore(`its schema has version ${version}`);
  await assertIdentity(client, identity);
  return readTable(client);
}

/**
 * The part of {@link assertSameStore} that needs one statement, and no lock on the table. A table that
 * the operator has prepared has no identity, and none is looked for.
 */
export async function assertIdentity(
  client: ClientBase,
  identity: string | undefined,
): Promise<void> {
  if (identity === undefined) return;
  const found = await readIdentity(client).catch((error: unknown) => {
    // No such table.
    if ((error as { code?: string }).code === '42P01') return undefined;
    throw error;
  });
  if (found !== identity) throw otherStore('its identity differs');
}

function otherStore(how: string): Error {
  return new Error(
    `this is not the store that was in use before (${how}). Restore that store, or restart the service to use this one`,
  );
}

async function readIdentity(client: ClientBase): Promise<string | undefined> {
  const { rows } = await client.query<{ identity: string | null }>(
    'SELECT identity::text FROM plants_migrations WHERE version = 1',
  );
  return rows[0]?.identity ?? undefined;
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

/** Which of our two tables there are. */
async function readTables(client: ClientBase): Promise<string[]> {
  // Not to_regclass(): it may use what the session had cached before it waited for the lock.
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class
     WHERE relname IN ('plants', 'plants_migrations') AND pg_table_is_visible(oid)`,
  );
  return rows.map(({ name }) => name);
}

async function readVersion(client: ClientBase): Promise<number> {
  const names = await readTables(client);
  if (!names.includes('plants_migrations')) {
    return names.includes('plants') ? migrations.length : 0;
  }

  const { rows } = await client.query<{ version: string | null }>(
    'SELECT max(version)::text AS version FROM plants_migrations',
  );
  const version = Number(rows[0]?.version);
  assertSupportedSchema(version, migrations.length);
  return version;
}
