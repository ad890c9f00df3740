import { Logger } from '@nestjs/common';
import type { ClientBase } from 'pg';
import { PLANT_COLUMNS } from '../../plant';
import { assertKnownVersion, MIGRATIONS, migrationsAfter } from '../migrations';

const logger = new Logger('PlantStore');

/** The statements that create the table, for an operator who prepares it. */
export const CREATE_TABLE_SQL = migrationsAfter(0, 'postgres').join('; ');

/**
 * Begins a transaction that only one instance at a time can run. Its statements must see what other instances
 * committed while it waited for the lock.
 */
const BEGIN_EXCLUSIVE = `
  BEGIN ISOLATION LEVEL READ COMMITTED;
  SELECT pg_advisory_xact_lock(x'706c616e7473'::bigint); -- "plants" in ASCII
  CREATE TABLE IF NOT EXISTS plants_migrations (version integer PRIMARY KEY, identity uuid)`;

/** Records a version. The first row gets the identity of the store. */
const RECORD_VERSION = `
  INSERT INTO plants_migrations (version, identity)
  SELECT $1::integer, CASE WHEN NOT EXISTS (SELECT FROM plants_migrations) THEN gen_random_uuid() END`;

/** Lists the columns of both tables with their types. */
const FIND_COLUMNS = `
  SELECT relname || '.' || attname || ' ' || atttypid::regtype AS column
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  WHERE relname IN ('plants', 'plants_migrations') AND pg_table_is_visible(attrelid)
    AND NOT attisdropped`;

/** Reads the schema version and the identity of the store. */
const READ_VERSION = `
  SELECT coalesce(max(version), 0)::text AS version, max(identity::text) AS identity
  FROM plants_migrations`;

/**
 * Finds session settings that could reject or lose plants (they can come from the role, the database or the
 * URL), and whether the database is one of Citus.
 */
const CHECK_SESSION = `
  SELECT CASE
    WHEN current_setting('transaction_read_only') = 'on' THEN
      'the server is a standby, or read-only: connect to the primary, or to a proxy that routes to it'
    WHEN current_setting('synchronous_commit', true) = 'off' THEN
      'synchronous_commit is off for this user, so a crash could lose commits: set it to on'
    WHEN current_setting('client_min_messages') IN ('error', 'fatal', 'panic') THEN
      'client_min_messages hides the warning about a commit that was not replicated: set it to warning'
    WHEN EXISTS (SELECT FROM pg_stat_activity
                 WHERE datname = current_database() AND wait_event = 'SyncRep'
                   AND query_start < clock_timestamp() - interval '2 seconds') THEN
      'a commit still waits for a synchronous standby: start the standby again'
  END AS problem, EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')::text AS is_citus`;

/** Counts the workers of a Citus cluster, if it has any, and reads whether the table is distributed. */
const READ_CLUSTER = `
  SELECT count(*)::text AS workers,
         (to_regclass('plants') IN (SELECT logicalrelid FROM pg_dist_partition))::text AS is_shared
  FROM pg_dist_node WHERE groupid <> 0 AND noderole = 'primary' HAVING count(*) > 0`;

/**
 * Makes `plants_migrations` a reference table, so that all nodes of a Citus cluster have the same version and
 * identity.
 */
const SHARE_MIGRATIONS = `
  SELECT create_reference_table(oid) FROM pg_class WHERE oid = to_regclass('plants_migrations')
    AND oid NOT IN (SELECT logicalrelid FROM pg_dist_partition)`;

/** The parts of a store that a database has. */
export interface Schema {
  readonly hasTable: boolean;
  /** The number of migrations that created the table; undefined if the operator prepared it. */
  readonly version?: number | undefined;
  /** Whether the table has a column for idempotency keys. One that the operator prepared may not. */
  readonly hasKeys: boolean;
  /** Undefined if the operator prepared the table. */
  readonly identity?: string | undefined;
}

/**
 * Checks a new session, and creates or upgrades the store in the first one.
 *
 * @param store the store in use; undefined in the first session
 * @param mayCreate whether to create or upgrade the store; if false, it is used as it is found
 * @throws Error when plants could be rejected or lost in this session, or when it is in another store
 */
export async function verifySession(
  client: ClientBase,
  store: Schema | undefined,
  mayCreate: boolean,
): Promise<Schema> {
  const [session] = await query<{ problem: string | null; is_citus: string }>(
    client,
    CHECK_SESSION,
  );
  if (session?.problem) throw new Error(session.problem);
  const isCitus = session?.is_citus === 'true';
  // Citus passes on the warnings of workers as DEBUG1, including those about missing standbys.
  if (isCitus) await client.query('SET client_min_messages = debug1');
  const found = await readSchema(client);
  if (store) assertSameStore(store, found);
  return store ?? (mayCreate ? createOrUpgrade(client, found, isCitus) : found);
}

function assertSameStore(store: Schema, found: Schema): void {
  if (found.hasTable && found.identity === store.identity) return;
  const [expected, other] = [store, found].map(({ identity }) => identity ?? 'without an identity');
  const difference = found.hasTable
    ? `expected store ${expected}, found store ${other}`
    : 'it has no table plants';
  throw new Error(
    `this is not the store that was in use before (${difference}). Restore that store, or restart the service to use this one`,
  );
}

/**
 * Creates the store if it is missing, or upgrades it if its version is older. Any number of instances may do
 * so at once. A table `plants` that the operator prepared (partitioned, distributed) is not changed: then
 * there is no table `plants_migrations`, or the database is a cluster.
 *
 * @throws Error with the statements to run when the operator has to create or upgrade the table
 */
async function createOrUpgrade(
  client: ClientBase,
  found: Schema,
  isCitus: boolean,
): Promise<Schema> {
  const [cluster] = isCitus
    ? await query<{ workers: string; is_shared: string | null }>(client, READ_CLUSTER)
    : [];
  if (cluster && cluster.is_shared !== 'true') {
    throw new Error(
      `this is a Citus cluster, and its table plants is not distributed. Run on the coordinator: ${CREATE_TABLE_SQL}; SELECT create_distributed_table('plants', 'id', shard_count => ${cluster.workers})`,
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
  await client.query(BEGIN_EXCLUSIVE);
  const [found] = await query<{ version: string }>(client, READ_VERSION);
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

/**
 * Reads which parts of a store the database has.
 *
 * @throws Error when the schema is incomplete or was created by a newer version of the service
 */
async function readSchema(client: ClientBase): Promise<Schema> {
  const columns = await query<{ column: string }>(client, FIND_COLUMNS);
  const has = (start: string): boolean => columns.some(({ column }) => column.startsWith(start));
  const hasMigrations = has('plants_migrations.');
  if (!has('plants.')) {
    if (hasMigrations) {
      throw new Error(
        'the table plants is missing, although plants_migrations exists: restore the database from a backup',
      );
    }
    return { hasTable: false, hasKeys: false };
  }
  const [found] = hasMigrations
    ? await query<{ version: string; identity: string | null }>(client, READ_VERSION)
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
