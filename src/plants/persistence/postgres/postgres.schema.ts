import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { PLANT_COLUMNS } from '../../plant';
import { assertSchemaVersion, SCHEMA_VERSION } from '../schema-version';

const logger = new Logger('PlantStore');

/** Makes the table. */
export const TABLE =
  'CREATE TABLE IF NOT EXISTS plants (id bigint PRIMARY KEY, name text NOT NULL, tag text, idempotency_key bytea)';

/** Each statement must see what others committed while this one waited for the advisory lock. */
const CREATE_STORE = `
  BEGIN ISOLATION LEVEL READ COMMITTED;
  SELECT pg_advisory_xact_lock(x'706c616e7473'::bigint); -- "plants" in ASCII
  ${TABLE};
  CREATE TABLE IF NOT EXISTS plants_migrations (version integer PRIMARY KEY, identity uuid);
  INSERT INTO plants_migrations (version, identity) SELECT ${SCHEMA_VERSION}, gen_random_uuid()
    WHERE NOT EXISTS (SELECT FROM plants_migrations);
  COMMIT`;

const COLUMNS = `
  SELECT relname || '.' || attname || ' ' || atttypid::regtype AS column
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  WHERE relname IN ('plants', 'plants_migrations') AND pg_table_is_visible(attrelid)
    AND NOT attisdropped`;

/** By way of JSON, since a store of another version may have no column for the identity. */
const VERSION = `
  SELECT coalesce(max(version), 0)::text AS version, max(to_json(migration) ->> 'identity') AS identity
  FROM plants_migrations AS migration`;

/**
 * Why plants of this session could be refused or lost (a role, a database and the URL have settings too),
 * and whether the database is one of Citus.
 */
const SESSION = `
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
  END AS fault, EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')::text AS is_citus`;

/** The workers of a Citus cluster, if it has any, and whether its metadata shows them the table. */
const CLUSTER = `
  SELECT count(*)::text AS workers,
         (to_regclass('plants') IN (SELECT logicalrelid FROM pg_dist_partition))::text AS is_shared
  FROM pg_dist_node WHERE groupid <> 0 AND noderole = 'primary' HAVING count(*) > 0`;

/** Shows every node of a Citus cluster the same version and identity. */
const SHARE_MIGRATIONS = `
  SELECT create_reference_table(oid) FROM pg_class WHERE oid = to_regclass('plants_migrations')
    AND oid NOT IN (SELECT logicalrelid FROM pg_dist_partition)`;

/** What a database has of a store. */
export interface Schema {
  readonly hasTable: boolean;
  /** A table of the operator may have no column for them. */
  readonly hasKeys: boolean;
  /** Undefined for a table that the operator has prepared. */
  readonly identity?: string | undefined;
}

/**
 * Checks a new session.
 *
 * @param store the one in use; undefined at first
 * @param mayCreate whether the store is created then, if it is missing; if not, it is used as it is found
 * @throws Error when plants could be refused or lost in this session, or when it is in another store
 */
export async function enterStore(
  client: ClientBase,
  store: Schema | undefined,
  mayCreate: boolean,
): Promise<Schema> {
  const [session] = await query<{ fault: string | null; is_citus: string }>(client, SESSION);
  if (session?.fault) throw new Error(session.fault);
  const isCitus = session?.is_citus === 'true';
  // Citus passes on the warnings of workers as DEBUG1, those about missing standbys too.
  if (isCitus) await client.query('SET client_min_messages = debug1');
  const found = await readSchema(client);
  if (store) assertSameStore(store, found);
  return store ?? (mayCreate ? create(client, found, isCitus) : found);
}

function assertSameStore(store: Schema, found: Schema): void {
  if (found.hasTable && found.identity === store.identity) return;
  const [expected, other] = [store, found].map(({ identity }) => identity ?? 'without an identity');
  const difference = found.hasTable
    ? `expected was the store ${expected}, found is the store ${other}`
    : 'it has no table plants';
  throw new Error(
    `this is not the store that was in use before (${difference}). Restore that store, or restart the service to use this one`,
  );
}

/**
 * Creates a store unless there is one. Any number of instances may do so at once. A table `plants` without
 * a table `plants_migrations` was prepared by the operator (partitioned, distributed) and is not changed.
 *
 * @throws Error when a table that it makes would be on one node of a cluster alone
 */
async function create(client: ClientBase, { hasTable }: Schema, isCitus: boolean): Promise<Schema> {
  const [cluster] = isCitus
    ? await query<{ workers: string; is_shared: string | null }>(client, CLUSTER)
    : [];
  if (cluster && cluster.is_shared !== 'true') {
    throw new Error(
      `this is a Citus cluster, and its table plants is not distributed. Run on the coordinator: ${TABLE}; SELECT create_distributed_table('plants', 'id', shard_count => ${cluster.workers})`,
    );
  }
  if (!hasTable) await client.query(CREATE_STORE);
  if (cluster) await client.query(SHARE_MIGRATIONS);
  const store = await readSchema(client);
  if (!store.hasKeys) {
    logger.warn(
      'The Idempotency-Key header is ignored, because the table plants has no column idempotency_key of type bytea.',
    );
  }
  return store;
}

/** @throws Error when the database has a part of a store, or one of another program */
async function readSchema(client: ClientBase): Promise<Schema> {
  const columns = await query<{ column: string }>(client, COLUMNS);
  const has = (start: string): boolean => columns.some(({ column }) => column.startsWith(start));
  const hasMigrations = has('plants_migrations.');
  if (!has('plants.')) {
    if (hasMigrations) throw new Error('the store has lost its table plants: restore it');
    return { hasTable: false, hasKeys: false };
  }
  const [found] = hasMigrations
    ? await query<{ version: string; identity: string | null }>(client, VERSION)
    : [];
  if (found) assertSchemaVersion(Number(found.version));
  const hasKeys = has('plants.idempotency_key bytea');
  await client.query(
    `SELECT ${[...PLANT_COLUMNS, ...(hasKeys ? ['idempotency_key'] : [])].join(', ')} FROM plants LIMIT 0`,
  );
  return { hasTable: true, hasKeys, identity: found?.identity ?? undefined };
}

async function query<Row extends object>(client: ClientBase, text: string): Promise<Row[]> {
  return (await client.query<Row>(text)).rows;
}
