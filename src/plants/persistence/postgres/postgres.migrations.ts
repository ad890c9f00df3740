import type { ClientBase } from 'pg';
import { assertSupportedSchema, describeUpgrade, type LogUpgrade } from '../schema-version';

const VERSION = 3;

/**
 * Of an earlier version, it leaves what is there: a column is added in the catalogue alone, however
 * many rows there are. A running service recognises its store by the identity.
 */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS plants
    (id bigint PRIMARY KEY, name text NOT NULL, tag text, idempotency_key bytea);
  ALTER TABLE plants ADD COLUMN IF NOT EXISTS idempotency_key bytea;
  CREATE TABLE IF NOT EXISTS plants_migrations (version integer PRIMARY KEY, identity uuid);
  ALTER TABLE plants_migrations ADD COLUMN IF NOT EXISTS identity uuid;
  INSERT INTO plants_migrations (version, identity) VALUES (${VERSION}, gen_random_uuid())`;

/**
 * Milliseconds that a migration waits for a lock on the table. While it waits behind a long read, a
 * dump for example, all others wait behind it. So it gives up soon, and a later probe tries again.
 */
const LOCK_TIMEOUT = 100;

/** The key of the advisory lock under which the schema is migrated: "plants" in ASCII. */
const LOCK = 0x706c616e7473;

export interface Schema {
  readonly hasPlants: boolean;
  /** 0 without any; the newest for a table that the operator has prepared. */
  readonly version: number;
  /** A table of the operator may have no column for them. */
  readonly hasKeys: boolean;
  /** Undefined for a table that the operator has prepared. */
  readonly identity: string | undefined;
}

/**
 * Brings the schema to its newest version. Any number of instances may do so at once. A table
 * `plants` without a table `plants_migrations` was prepared by the operator (partitioned,
 * distributed) and is not changed.
 *
 * @throws Error when it cannot, or when the schema is newer than this program
 */
export async function migrate(client: ClientBase, log?: LogUpgrade): Promise<Schema> {
  if ((await readSchema(client)).version < VERSION) await migrateLocked(client, log);
  // Another instance may have migrated while this one was reading.
  return readSchema(client);
}

async function migrateLocked(client: ClientBase, log?: LogUpgrade): Promise<void> {
  // Each statement must see what others committed while this one waited for the lock.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    await client.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT}`);
    const { version } = await readSchema(client);
    if (version > 0 && version < VERSION) log?.(describeUpgrade(version, VERSION));
    if (version < VERSION) await client.query(SCHEMA);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/**
 * @param identity what {@link migrate} returned when the store was first used
 * @throws Error when the database is not that store
 */
export async function assertSameStore(
  client: ClientBase,
  identity: string | undefined,
): Promise<Schema> {
  const schema = await readSchema(client);
  const difference =
    (!schema.hasPlants && 'it has no table plants') ||
    (schema.version < VERSION && `its schema has version ${schema.version}`) ||
    // A table that the operator has prepared has no identity.
    (identity !== undefined && schema.identity !== identity && 'its identity differs');
  if (!difference) return schema;
  throw new Error(
    `this is not the store that was in use before (${difference}). Restore that store, or restart the service to use this one`,
  );
}

/** @throws Error when the table has other columns, or is not readable for this user */
export async function assertReadable(client: ClientBase, { hasKeys }: Schema): Promise<void> {
  const keys = hasKeys ? ', idempotency_key' : '';
  await client.query(`SELECT id, name, tag${keys} FROM plants LIMIT 0`);
}

async function readSchema(client: ClientBase): Promise<Schema> {
  // Not to_regclass(): it may use what the session had cached before it waited for the lock.
  const { rows } = await client.query<{ column: string }>(
    `SELECT relname::text || '.' || attname::text || ' ' || atttypid::regtype::text AS column
     FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
     WHERE relname IN ('plants', 'plants_migrations') AND pg_table_is_visible(attrelid)
       AND NOT attisdropped`,
  );
  const has = (start: string): boolean => rows.some(({ column }) => column.startsWith(start));
  const hasPlants = has('plants.');
  const hasKeys = has('plants.idempotency_key bytea');
  if (!has('plants_migrations.')) {
    return { hasPlants, hasKeys, version: hasPlants ? VERSION : 0, identity: undefined };
  }
  const identityText = has('plants_migrations.identity ') ? 'identity::text' : 'NULL';
  const { rows: versions } = await client.query<{ version: string; identity: string | null }>(
    `SELECT coalesce(max(version), 0)::text AS version, max(${identityText}) AS identity
     FROM plants_migrations`,
  );
  const { version, identity } = versions[0] ?? { version: 0, identity: null };
  assertSupportedSchema(Number(version), VERSION);
  return { hasPlants, hasKeys, version: Number(version), identity: identity ?? undefined };
}
