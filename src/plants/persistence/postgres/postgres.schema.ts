import type { ClientBase } from 'pg';
import { assertSupportedSchema, describeUpgrade, type LogUpgrade } from '../schema-version';

const VERSION = 3;

const TABLE =
  'CREATE TABLE IF NOT EXISTS plants (id bigint PRIMARY KEY, name text NOT NULL, tag text, idempotency_key bytea)';

/** Leaves what an earlier version has: a column is added in the catalogue alone. */
const SCHEMA = `
  ${TABLE};
  ALTER TABLE plants ADD COLUMN IF NOT EXISTS idempotency_key bytea;
  CREATE TABLE IF NOT EXISTS plants_migrations (version integer PRIMARY KEY, identity uuid);
  ALTER TABLE plants_migrations ADD COLUMN IF NOT EXISTS identity uuid;
  INSERT INTO plants_migrations (version, identity) VALUES (${VERSION}, gen_random_uuid())`;

/** Not to_regclass(): it may use what the session had cached before it waited for the lock. */
const COLUMNS = `
  SELECT relname || '.' || attname || ' ' || atttypid::regtype AS column
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  WHERE relname IN ('plants', 'plants_migrations') AND pg_table_is_visible(attrelid)
    AND NOT attisdropped`;

/** Why plants of this session could be refused or lost: a role, a database and the URL have settings too. */
const FAULT = `
  SELECT CASE
    WHEN current_setting('transaction_read_only') = 'on' THEN
      'the server is a standby, or read-only: name the primary, or a proxy that finds it'
    WHEN current_setting('synchronous_commit', true) = 'off' THEN
      'synchronous_commit is off for this user, so a crash could lose commits: set it to on'
    WHEN current_setting('client_min_messages') IN ('error', 'fatal', 'panic') THEN
      'client_min_messages hides the warning about a commit that was not replicated: set it to warning'
  END AS fault`;

const CITUS = "SELECT FROM pg_extension WHERE extname = 'citus'";

/** Whether every node of a Citus cluster sees the table: it is in Citus's metadata. */
const CLUSTER = `
  SELECT count(*)::text AS workers,
         (to_regclass('plants') IN (SELECT logicalrelid FROM pg_dist_partition))::text AS is_shared
  FROM pg_dist_node WHERE groupid <> 0 AND noderole = 'primary'`;

/** Shows every node of a Citus cluster the same version and identity. */
const SHARE_MIGRATIONS = `
  SELECT create_reference_table(oid) FROM pg_class WHERE oid = to_regclass('plants_migrations')
    AND oid NOT IN (SELECT logicalrelid FROM pg_dist_partition)`;

/** The key of the advisory lock under which the schema is migrated: "plants" in ASCII. */
const LOCK = 0x706c616e7473;

/** What a database has of a store. */
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
 * Checks and sets up a new session.
 *
 * @param store the one that the session must be in, if one is in use already
 * @throws Error when plants inserted in it could be refused, lost, or stored elsewhere
 */
export async function checkSession(client: ClientBase, store: Schema | undefined): Promise<void> {
  const [{ fault } = {}] = await query<{ fault: string | null }>(client, FAULT);
  if (fault) throw new Error(fault);
  // Citus passes on the warnings of workers as DEBUG1, those about missing standbys too.
  const citus = await query(client, CITUS);
  if (citus.length > 0) await client.query('SET client_min_messages = debug1');
  const difference = store && describeDifference(await readSchema(client), store);
  if (difference === undefined) return;
  throw new Error(
    `this is not the store that was in use before (${difference}). Restore that store, or restart the service to use this one`,
  );
}

function describeDifference(found: Schema, store: Schema): string | undefined {
  if (!found.hasPlants) return 'it has no table plants';
  if (found.version < VERSION) return `its schema has version ${found.version}`;
  if (found.identity === store.identity) return undefined;
  const [expected, actual] = [store, found].map(
    ({ identity }) => identity ?? 'without an identity',
  );
  return `expected was the store ${expected}, found is the store ${actual}`;
}

/**
 * Creates a store, or brings one to the newest version. Any number of instances may do so at once. A
 * table `plants` without a table `plants_migrations` was prepared by the operator (partitioned,
 * distributed) and is not changed.
 *
 * @throws Error when it cannot, or when the schema is newer than this program
 */
export async function migrateDatabase(client: ClientBase, log?: LogUpgrade): Promise<Schema> {
  const isCluster = await isOnCluster(client);
  if ((await readSchema(client)).version < VERSION) await migrateLocked(client, log);
  if (isCluster) await client.query(SHARE_MIGRATIONS);
  // Another instance may have migrated while this one was reading.
  return readSchema(client);
}

/** @throws Error when a table that the service makes would be on one node of a Citus cluster alone */
async function isOnCluster(client: ClientBase): Promise<boolean> {
  if ((await query(client, CITUS)).length === 0) return false;
  const [cluster] = await query<{ workers: string; is_shared: string | null }>(client, CLUSTER);
  const { workers = '0', is_shared } = cluster ?? {};
  if (workers === '0' || is_shared === 'true') return workers !== '0';
  throw new Error(
    `this is a Citus cluster, and its table plants is not distributed. Run on the coordinator: ${TABLE}; SELECT create_distributed_table('plants', 'id', shard_count => ${workers})`,
  );
}

async function migrateLocked(client: ClientBase, log?: LogUpgrade): Promise<void> {
  // Each statement must see what others committed while this one waited for the lock.
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    await client.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    // While it waits behind a long read, a dump for example, all others wait behind it. So it gives up
    // soon, and a later probe tries again.
    await client.query("SET LOCAL lock_timeout = '100ms'");
    const { version, hasPlants } = await readSchema(client);
    if (version > 0 && !hasPlants)
      throw new Error('the store has lost its table plants: restore it');
    if (version < VERSION) await client.query(SCHEMA);
    // Once, although a migration is tried again and again while the table is locked.
    if (version > 0 && version < VERSION) log?.(describeUpgrade(version, VERSION));
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** @throws Error when a commit waits for a synchronous standby, and not just for a moment */
export async function assertReplicating(client: ClientBase): Promise<void> {
  const waiting = await query(
    client,
    `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'SyncRep'
     AND query_start < clock_timestamp() - interval '2 seconds' LIMIT 1`,
  );
  if (waiting.length === 0) return;
  throw new Error('a commit still waits for a synchronous standby: start the standby again');
}

/** @throws Error when the table has other columns, or is not readable for this user */
export async function assertReadable(client: ClientBase, { hasKeys }: Schema): Promise<void> {
  await client.query(
    `SELECT id, name, tag${hasKeys ? ', idempotency_key' : ''} FROM plants LIMIT 0`,
  );
}

/** Reads what a database has of a store. */
export async function readSchema(client: ClientBase): Promise<Schema> {
  const columns = await query<{ column: string }>(client, COLUMNS);
  const has = (start: string): boolean => columns.some(({ column }) => column.startsWith(start));
  const [hasPlants, hasKeys] = [has('plants.'), has('plants.idempotency_key bytea')];
  if (!has('plants_migrations.')) {
    return { hasPlants, hasKeys, version: hasPlants ? VERSION : 0, identity: undefined };
  }
  const identityText = has('plants_migrations.identity ') ? 'identity::text' : 'NULL';
  const [migrated] = await query<{ version: string; identity: string | null }>(
    client,
    `SELECT coalesce(max(version), 1)::text AS version, max(${identityText}) AS identity
     FROM plants_migrations`,
  );
  const version = Number(migrated?.version);
  assertSupportedSchema(version, VERSION);
  return { hasPlants, hasKeys, version, identity: migrated?.identity ?? undefined };
}

async function query<Row extends object>(client: ClientBase, text: string): Promise<Row[]> {
  return (await client.query<Row>(text)).rows;
}
