import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { PLANT_COLUMNS } from '../../plant';
import { assertKnownVersion, MIGRATIONS, migrationsAfter } from '../migrations';

const logger = new Logger('PlantStore');

/** The statements that make the table, for an operator who prepares it. */
export const TABLE = migrationsAfter(0, 'postgres').join('; ');

/**
 * Begins a transaction that one instance at a time is in. Each statement of it must see what others
 * committed while this one waited for the lock.
 */
const BEGIN_ALONE = `
  BEGIN ISOLATION LEVEL READ COMMITTED;
  SELECT pg_advisory_xact_lock(x'706c616e7473'::bigint); -- "plants" in ASCII
  CREATE TABLE IF NOT EXISTS plants_migrations (version integer PRIMARY KEY, identity uuid)`;

/** Records a version. The first row has the identity of the store. */
const RECORD_VERSION = `
  INSERT INTO plants_migrations (version, identity)
  SELECT $1::integer, CASE WHEN NOT EXISTS (SELECT FROM plants_migrations) THEN gen_random_uuid() END`;

const COLUMNS = `
  SELECT relname || '.' || attname || ' ' || atttypid::regtype AS column
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  WHERE relname IN ('plants', 'plants_migrations') AND pg_table_is_visible(attrelid)
    AND NOT attisdropped`;

const VERSION = `
  SELECT coalesce(max(version), 0)::text AS version, max(identity::text) AS identity
  FROM plants_migrations`;

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
  /** How many migrations made it; undefined for a table that the operator has prepared. */
  readonly version?: number | undefined;
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
 * Creates a store unless there is one, or upgrades one of an older version. Any number of instances may do
 * so at once. A table `plants` that the operator has prepared (partitioned, distributed) is not changed:
 * there is no table `plants_migrations`, or the database is a cluster.
 *
 * @throws Error saying what to run, when the operator has to create or upgrade the table
 */
async function create(client: ClientBase, found: Schema, isCitus: boolean): Promise<Schema> {
  const [cluster] = isCitus
    ? await query<{ workers: string; is_shared: string | null }>(client, CLUSTER)
    : [];
  if (cluster && cluster.is_shared !== 'true') {
    throw new Error(
      `this is a Citus cluster, and its table plants is not distributed. Run on the coordinator: ${TABLE}; SELECT create_distributed_table('plants', 'id', shard_count => ${cluster.workers})`,
    );
  }
  const { version = MIGRATIONS.length } = found;
  const isOutdated = version < MIGRATIONS.length;
  if (cluster && isOutdated) {
    throw new Error(
      `the table plants has schema version ${version}, and this service needs version ${MIGRATIONS.length}. The table is distributed, so the service does not change it. Run on the coordinator: ${migrationsAfter(version, 'postgres').join('; ')}; INSERT INTO plants_migrations (version) VALUES (${MIGRATIONS.length})`,
    );
  }
  if (!found.hasTable || isOutdated) await migrate(client);
  if (cluster) await client.query(SHARE_MIGRATIONS);
  const store = await readSchema(client);
  if (!store.hasKeys) {
    logger.warn(
      'The Idempotency-Key header is ignored, because the table plants has no column idempotency_key of type bytea.',
    );
  }
  return store;
}

/** Applies the migrations that the store lacks, in one transaction. */
async function migrate(client: ClientBase): Promise<void> {
  await client.query(BEGIN_ALONE);
  const [found] = await query<{ version: string }>(client, VERSION);
  const version = Number(found?.version);
  assertKnownVersion(version);
  for (const [at, statement] of migrationsAfter(version, 'postgres').entries()) {
    await client.query(statement);
    await client.query(RECORD_VERSION, [version + at + 1]);
  }
  await client.query('COMMIT');
  if (version > 0 && version < MIGRATIONS.length) {
    logger.log(`Upgraded the store from schema version ${version} to ${MIGRATIONS.length}.`);
  }
}

/** @throws Error when the database has a part of a store, or one of a newer service */
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
  const version = found && Number(found.version);
  if (version !== undefined) assertKnownVersion(version);
  const hasKeys = has('plants.idempotency_key bytea');
  // An older version is upgraded before its columns are read.
  if (version === undefined || version === MIGRATIONS.length) {
    await client.query(
      `SELECT ${[...PLANT_COLUMNS, ...(hasKeys ? ['idempotency_key'] : [])].join(', ')} FROM plants LIMIT 0`,
    );
  }
  return { hasTable: true, hasKeys, version, identity: found?.identity ?? undefined };
}

async function query<Row extends object>(client: ClientBase, text: string): Promise<Row[]> {
  return (await client.query<Row>(text)).rows;
}
