import type { ClientBase } from 'pg';
import { assertSupportedSchema, describeUpgrade, type LogUpgrade } from '../schema-version';

const VERSION = 3;

const TABLE =
  'CREATE TABLE IF NOT EXISTS plants (id bigint PRIMARY KEY, name text NOT NULL, tag text, idempotency_key bytea)';

/**
 * Of an earlier version, it leaves what is there: a column is added in the catalogue alone, however
 * many rows there are. A running service recognises its store by the identity.
 */
const SCHEMA = `
  ${TABLE};
  ALTER TABLE plants ADD COLUMN IF NOT EXISTS idempotency_key bytea;
  CREATE TABLE IF NOT EXISTS plants_migrations (version integer PRIMARY KEY, identity uuid);
  ALTER TABLE plants_migrations ADD COLUMN IF NOT EXISTS identity uuid;
  INSERT INTO plants_migrations (version, identity) VALUES (${VERSION}, gen_random_uuid())`;

/**
 * Whether every node of a Citus cluster sees the table: it is distributed, a reference table, or a
 * local one that the operator has added to Citus's metadata.
 */
const CLUSTER = `
  SELECT count(*)::text AS workers,
         (to_regclass('plants') IN (SELECT logicalrelid FROM pg_dist_partition))::text AS is_shared
  FROM pg_dist_node WHERE groupid <> 0 AND noderole = 'primary'`;

/** Shows every node of a Citus cluster the same version and identity. */
const SHARE_MIGRATIONS = `
  SELECT create_reference_table(oid) FROM pg_class
  WHERE oid = to_regclass('plants_migrations')
    AND oid NOT IN (SELECT logicalrelid FROM pg_dist_partition)`;

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
  /** Whether the store may have an identity that only the coordinator of its Citus cluster sees yet. */
  readonly hasHiddenIdentity?: boolean;
}

/**
 * Brings the schema to its newest version. Any number of instances may do so at once. A table
 * `plants` without a table `plants_migrations` was prepared by the operator (partitioned,
 * distributed) and is not changed.
 *
 * @throws Error when it cannot, or when the schema is newer than this program
 */
export async function migrate(client: ClientBase, log?: LogUpgrade): Promise<Schema> {
  const isCluster = await isOnCluster(client);
  if ((await readSchema(client)).version < VERSION) await migrateLocked(client, log);
  if (isCluster) await client.query(SHARE_MIGRATIONS);
  // Another instance may have migrated while this one was reading.
  return readSchema(client);
}

/**
 * On a Citus cluster with workers, a table that the service makes would be on one node alone, so an
 * instance on another node would make another one, for the same ids.
 *
 * @throws Error on such a cluster, unless every node sees the table
 */
async function isOnCluster(client: ClientBase): Promise<boolean> {
  const { rows: citus } = await client.query("SELECT FROM pg_extension WHERE extname = 'citus'");
  if (citus.length === 0) return false;
  const { rows } = await client.query<{ workers: string; is_shared: string | null }>(CLUSTER);
  const { workers = '0', is_shared } = rows[0] ?? {};
  if (workers === '0') return false;
  if (is_shared === 'true') return true;
  throw new Error(
    `this is a Citus cluster, and its table plants is not distributed. Run on the coordinator: ${TABLE}; SELECT create_distributed_table('plants', 'id', shard_count => ${workers})`,
  );
}

async function isWorker(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query('SELECT FROM pg_dist_local_group WHERE groupid <> 0');
  return rows.length > 0;
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

export function hasStore({ hasPlants, version }: Schema): boolean {
  return hasPlants || version > 0;
}

/** Says how a database differs from the store in use; undefined when it is that store. */
export function describeDifference(schema: Schema, store: Schema): string | undefined {
  if (!schema.hasPlants) return 'it has no table plants';
  if (schema.version < VERSION) return `its schema has version ${schema.version}`;
  return schema.identity === store.identity ? undefined : 'its identity differs';
}

/** @throws Error when the table has other columns, or is not readable for this user */
export async function assertReadable(client: ClientBase, { hasKeys }: Schema): Promise<void> {
  const keys = hasKeys ? ', idempotency_key' : '';
  await client.query(`SELECT id, name, tag${keys} FROM plants LIMIT 0`);
}

export async function readSchema(client: ClientBase): Promise<Schema> {
  // Not to_regclass(): it may use what the session had cached before it waited for the lock.
  // Citus passes on the warnings of workers as DEBUG1, those about missing standbys too.
  const { rows } = await client.query<{ column: string }>(
    `SELECT relname::text || '.' || attname::text || ' ' || atttypid::regtype::text AS column
     FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
     WHERE relname IN ('plants', 'plants_migrations') AND pg_table_is_visible(attrelid)
       AND NOT attisdropped
     UNION ALL SELECT set_config('client_min_messages', 'debug1', false) FROM pg_extension WHERE extname = 'citus'`,
  );
  const has = (start: string): boolean => rows.some(({ column }) => column.startsWith(start));
  const hasPlants = has('plants.');
  const hasKeys = has('plants.idempotency_key bytea');
  if (!has('plants_migrations.')) {
    const version = hasPlants ? VERSION : 0;
    const isCitus = has('debug1');
    const hasHiddenIdentity = isCitus && (await isWorker(client));
    return { hasPlants, hasKeys, version, identity: undefined, hasHiddenIdentity };
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
