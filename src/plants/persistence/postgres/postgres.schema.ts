import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { assertSupportedSchema, describeUpgrade } from '../schema-version';

const logger = new Logger('PlantStore');

const VERSION = 3;

const TABLE =
  'CREATE TABLE IF NOT EXISTS plants (id bigint PRIMARY KEY, name text NOT NULL, tag text, idempotency_key bytea)';

/**
 * Creates a store, or adds columns to one. Each statement must see what others committed while this one
 * waited for the advisory lock. While it waits behind a long read, a dump for example, all others wait
 * behind it. So it gives up soon, and a later probe tries again.
 */
const MIGRATION = `
  BEGIN ISOLATION LEVEL READ COMMITTED;
  SELECT pg_advisory_xact_lock(x'706c616e7473'::bigint); -- "plants" in ASCII
  SET LOCAL lock_timeout = '100ms';
  ${TABLE};
  ALTER TABLE plants ADD COLUMN IF NOT EXISTS idempotency_key bytea;
  CREATE TABLE IF NOT EXISTS plants_migrations (version integer PRIMARY KEY, identity uuid);
  ALTER TABLE plants_migrations ADD COLUMN IF NOT EXISTS identity uuid;
  INSERT INTO plants_migrations (version, identity) SELECT ${VERSION}, gen_random_uuid()
    WHERE NOT EXISTS (SELECT FROM plants_migrations WHERE version >= ${VERSION});
  COMMIT`;

const COLUMNS = `
  SELECT relname || '.' || attname || ' ' || atttypid::regtype AS column
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  WHERE relname IN ('plants', 'plants_migrations') AND pg_table_is_visible(attrelid)
    AND NOT attisdropped`;

/** By way of JSON, since version 1 and 2 have no column for the identity. */
const MIGRATED = `
  SELECT coalesce(max(version), 1)::text AS version, max(to_json(migration) ->> 'identity') AS identity
  FROM plants_migrations AS migration`;

/** Why plants of this session could be refused or lost: a role, a database and the URL have settings too. */
const FAULT = `
  SELECT CASE
    WHEN current_setting('transaction_read_only') = 'on' THEN
      'the server is a standby, or read-only: name the primary, or a proxy that finds it'
    WHEN current_setting('synchronous_commit', true) = 'off' THEN
      'synchronous_commit is off for this user, so a crash could lose commits: set it to on'
    WHEN current_setting('client_min_messages') IN ('error', 'fatal', 'panic') THEN
      'client_min_messages hides the warning about a commit that was not replicated: set it to warning'
    WHEN EXISTS (SELECT FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event = 'SyncRep'
                   AND query_start < clock_timestamp() - interval '2 seconds') THEN
      'a commit still waits for a synchronous standby: start the standby again'
  END AS fault`;

/** Whether every node of a Citus cluster sees the table: it is in Citus's metadata. */
const CLUSTER = `
  SELECT count(*)::text AS workers,
         (to_regclass('plants') IN (SELECT logicalrelid FROM pg_dist_partition))::text AS is_shared
  FROM pg_dist_node WHERE groupid <> 0 AND noderole = 'primary'`;

/** Shows every node of a Citus cluster the same version and identity. */
const SHARE_MIGRATIONS = `
  SELECT create_reference_table(oid) FROM pg_class WHERE oid = to_regclass('plants_migrations')
    AND oid NOT IN (SELECT logicalrelid FROM pg_dist_partition)`;

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

/** @throws Error when plants inserted in a new session could be refused or lost */
export async function setUpSession(client: ClientBase): Promise<void> {
  const [{ fault } = {}] = await query<{ fault: string | null }>(client, FAULT);
  if (fault) throw new Error(fault);
  // Citus passes on the warnings of workers as DEBUG1, those about missing standbys too.
  if (await isCitus(client)) await client.query('SET client_min_messages = debug1');
}

/** @throws Error when a session is in another store than the one in use */
export async function assertSameStore(client: ClientBase, store: Schema): Promise<void> {
  const found = await readSchema(client);
  if (found.hasPlants && found.identity === store.identity) return;
  const none = 'without an identity';
  const difference = found.hasPlants
    ? `expected was the store ${store.identity ?? none}, found is the store ${found.identity ?? none}`
    : 'it has no table plants';
  throw new Error(
    `this is not the store that was in use before (${difference}). Restore that store, or restart the service to use this one`,
  );
}

/**
 * Creates a store, or brings one to the newest version. Any number of instances may do so at once. A
 * table `plants` without a table `plants_migrations` was prepared by the operator (partitioned,
 * distributed) and is not changed.
 *
 * @throws Error when it cannot, or when the schema is newer than this program
 */
export async function migrateDatabase(client: ClientBase): Promise<Schema> {
  const isCluster = await isOnCluster(client);
  const { version } = await findStore(client);
  if (version < VERSION) await client.query(MIGRATION);
  if (version > 0 && version < VERSION) logger.log(describeUpgrade(version, VERSION));
  if (isCluster) await client.query(SHARE_MIGRATIONS);
  const store = await findStore(client);
  if (!store.hasKeys) {
    logger.warn(
      'The Idempotency-Key header is ignored, because the table plants has no column idempotency_key of type bytea.',
    );
  }
  return store;
}

async function isCitus(client: ClientBase): Promise<boolean> {
  return (await query(client, "SELECT FROM pg_extension WHERE extname = 'citus'")).length > 0;
}

/**
 * Whether the database is on a Citus cluster. Without workers it is on a plain server.
 *
 * @throws Error when a table that the service makes would be on one node of the cluster alone
 */
async function isOnCluster(client: ClientBase): Promise<boolean> {
  if (!(await isCitus(client))) return false;
  const [cluster] = await query<{ workers: string; is_shared: string }>(client, CLUSTER);
  const { workers = '0', is_shared } = cluster ?? {};
  if (workers === '0' || is_shared === 'true') return workers !== '0';
  throw new Error(
    `this is a Citus cluster, and its table plants is not distributed. Run on the coordinator: ${TABLE}; SELECT create_distributed_table('plants', 'id', shard_count => ${workers})`,
  );
}

/** @throws Error when the database has a part of a store, or one of a newer program */
export async function findStore(client: ClientBase): Promise<Schema> {
  const schema = await readSchema(client);
  if (schema.hasPlants || schema.version === 0) return schema;
  throw new Error('the store has lost its table plants: restore it');
}

async function readSchema(client: ClientBase): Promise<Schema> {
  const columns = await query<{ column: string }>(client, COLUMNS);
  const has = (start: string): boolean => columns.some(({ column }) => column.startsWith(start));
  const hasPlants = has('plants.');
  const hasKeys = has('plants.idempotency_key bytea');
  const names = hasKeys ? 'id, name, tag, idempotency_key' : 'id, name, tag';
  if (hasPlants) await client.query(`SELECT ${names} FROM plants LIMIT 0`);
  if (!has('plants_migrations.')) {
    return { hasPlants, hasKeys, version: hasPlants ? VERSION : 0, identity: undefined };
  }
  const [found] = await query<{ version: string; identity: string | null }>(client, MIGRATED);
  const version = Number(found?.version);
  assertSupportedSchema(version, VERSION);
  return { hasPlants, hasKeys, version, identity: found?.identity ?? undefined };
}

async function query<Row extends object>(client: ClientBase, text: string): Promise<Row[]> {
  return (await client.query<Row>(text)).rows;
}
