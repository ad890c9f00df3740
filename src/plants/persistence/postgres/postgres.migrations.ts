import type { ClientBase } from 'pg';

/**
 * The versions of the PostgreSQL schema: statement N brings a database from version N to N + 1. A
 * migration that has been released is never changed; a change is a further one.
 *
 * The `identity` beside version 1 is that of the store, by which a running service knows it again.
 */
const migrations: readonly string[] = [
  'CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text)',
  `ALTER TABLE plants_migrations ADD COLUMN identity uuid;
   UPDATE plants_migrations SET identity = gen_random_uuid() WHERE version = 1`,
];

/** The key of the advisory lock under which the schema is migrated: "plants" in ASCII. */
const LOCK = 0x706c616e7473;

/** Fails when the table is missing, has other columns, or is not readable for this user. */
const SELECT_NOTHING = 'SELECT id, name, tag FROM plants LIMIT 0';

/**
 * Brings the schema to its newest version. Any number of instances may do so at once. A table
 * `plants` without a table `plants_migrations` was prepared by the operator (partitioned,
 * distributed) and is not changed.
 *
 * @returns the store's identity; undefined for a table that the operator has prepared
 * @throws Error when it cannot, or when the schema is newer than this program
 */
export async function migrate(client: ClientBase): Promise<string | undefined> {
  if ((await readVersion(client)) < migrations.length) await migrateLocked(client);
  await client.query(SELECT_NOTHING);
  const tables = await readTables(client);
  return tables.includes('plants_migrations') ? readIdentity(client) : undefined;
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
): Promise<void> {
  if (!(await readTables(client)).includes('plants')) throw otherStore('it has no table plants');
  const version = await readVersion(client);
  if (version < migrations.length) throw otherStore(`its schema has version ${version}`);
  await assertIdentity(client, identity);
  await client.query(SELECT_NOTHING);
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
    `this is not the store that was in use (${how}). Put that one back, or restart the service to use this one`,
  );
}

async function readIdentity(client: ClientBase): Promise<string | undefined> {
  const { rows } = await client.query<{ identity: string | null }>(
    'SELECT identity::text FROM plants_migrations WHERE version = 1',
  );
  return rows[0]?.identity ?? undefined;
}

async function migrateLocked(client: ClientBase): Promise<void> {
  // Each statement must see what others committed while this one waited for the lock.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
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
  if (version > migrations.length) {
    throw new Error(
      `the database has schema version ${version}; this program knows ${migrations.length}`,
    );
  }
  return version;
}
