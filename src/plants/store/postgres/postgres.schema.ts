import type { ClientBase } from 'pg';
import { CONTENT_PROPERTIES } from '../../plant/plant';
import { isProduction } from '../../environment';
import { assertKnownVersion, MIGRATIONS, migrationsAfter } from '../migrations';
import { logUpgrade } from '../upgrade-log';

/** The columns of the table that the service uses, with their types. */
export const COLUMNS: readonly (readonly [name: string, type: string])[] = [
  ['id', 'bigint'],
  ...CONTENT_PROPERTIES.map((name) => [name, 'text'] as const),
  ['idempotency_key', 'bytea'],
];

/** Begins a transaction of one instance at a time, which sees what others committed while it waited for the lock. */
const BEGIN_EXCLUSIVE = `
  BEGIN ISOLATION LEVEL READ COMMITTED;
  SELECT pg_advisory_xact_lock(x'706c616e7473'::bigint); -- "plants" in ASCII
  CREATE TABLE IF NOT EXISTS plants_migrations (version integer PRIMARY KEY, identity uuid)`;

/** Records the current version. The first row gets the identity of the store. */
const RECORD_VERSION = `
  INSERT INTO plants_migrations (version, identity)
  SELECT ${MIGRATIONS.length}, CASE WHEN NOT EXISTS (SELECT FROM plants_migrations) THEN gen_random_uuid() END
  ON CONFLICT DO NOTHING`;

const READ_VERSION = `
  SELECT coalesce(max(version), 0)::text AS version, max(identity::text) AS identity
  FROM plants_migrations`;

/**
 * Finds the tables, and what could reject, change or lose plants: settings, which can come from the server, the
 * database, the role or the URL; tables and partitions that a crash empties; types of columns (a `varchar` with a length
 * cuts off spaces). A commit that waits for a standby is a problem too: the session of a probe would also wait.
 */
const READ_SESSION = `
  WITH RECURSIVE tables AS (
    SELECT oid FROM pg_class WHERE oid IN (to_regclass('plants'), to_regclass('plants_migrations'))
    UNION SELECT inhrelid FROM pg_inherits JOIN tables ON inhparent = oid
  ), columns AS (
    SELECT attname, format_type(atttypid, atttypmod) AS found FROM pg_attribute
    WHERE attrelid = to_regclass('plants') AND NOT attisdropped
  )
  SELECT to_regclass('plants')::text AS plants, to_regclass('plants_migrations')::text AS migrations, (
    SELECT 'the column ' || name || ' of plants must be ' || type || ', but is ' || coalesce(found, 'missing')
    FROM (VALUES ${COLUMNS.map(([name, type]) => `('${name}', '${type}')`).join()}) AS required (name, type)
    LEFT JOIN columns ON attname = name
    WHERE coalesce(found, '') NOT IN (type, CASE type WHEN 'text' THEN 'character varying' ELSE type END) LIMIT 1
  ) AS misfit, CASE current_setting('fsync', true) WHEN 'off' THEN
    'fsync is off, so a power loss could lose plants: set it to on'
  END AS risk, coalesce((
    SELECT relname || ' is ' || CASE relpersistence WHEN 'u' THEN 'unlogged' WHEN 't' THEN 'temporary'
      ELSE 'a view or a foreign table' END || ', so plants could be lost: use an ordinary table'
    FROM pg_class JOIN tables USING (oid) WHERE relpersistence <> 'p' OR relkind NOT IN ('r', 'p') LIMIT 1
  ), CASE
    WHEN to_regclass('plants') IS NULL AND to_regclass('plants_migrations') IS NOT NULL THEN
      'the table plants is missing, although plants_migrations exists: restore the database from a backup'
    WHEN current_setting('transaction_read_only') = 'on' THEN
      'the server is a standby, or read-only: connect to the primary, or to a proxy that routes to it'
    WHEN current_setting('server_encoding') <> 'UTF8' THEN
      'the database has the encoding ' || current_setting('server_encoding') ||
      ', which cannot store every string: use a database with the encoding UTF8'
    WHEN current_setting('array_nulls', true) = 'off' THEN
      'array_nulls is off, so a plant without a tag would get the tag "NULL": set it to on'
    WHEN current_setting('synchronous_commit', true) = 'off' THEN
      'synchronous_commit is off, so a crash could lose commits: set it to on'
    WHEN current_setting('synchronous_commit', true) = 'local'
         AND current_setting('synchronous_standby_names', true) <> '' THEN
      'synchronous_commit is local, so commits do not wait for the standbys in synchronous_standby_names: set it to on'
    WHEN current_setting('client_min_messages') IN ('error', 'fatal', 'panic') THEN
      'client_min_messages hides the warning about a commit that was not replicated: set it to warning'
    WHEN EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'SyncRep'
                 AND query_start < clock_timestamp() - interval '2 seconds') THEN
      'a commit still waits for a synchronous standby: start the standby again'
    END) AS problem`;

type SessionRow = Record<'plants' | 'migrations' | 'misfit' | 'risk' | 'problem', string | null>;

/** A table `plants`, as it was found. If the operator prepared it, it has no version and no identity. */
export interface FoundStore {
  readonly version?: number;
  readonly identity?: string | undefined;
  /** Why a crash of the machine could lose plants; null if it cannot. Outside production, it is accepted. */
  readonly risk: string | null;
}

/**
 * Finds the store; undefined if there is none.
 * @throws Error when plants could be rejected, changed or lost in this session, or when the store is incomplete or newer
 */
export async function findStore(session: ClientBase): Promise<FoundStore | undefined> {
  const { rows: sessions } = await session.query<SessionRow>(READ_SESSION);
  const [{ plants, migrations, misfit, risk, problem }] = sessions as [SessionRow];
  const reason = problem ?? (isProduction(process.env) ? risk : null);
  if (reason !== null) throw new Error(reason);
  if (plants === null) return undefined;
  const store = migrations === null ? undefined : await readVersion(session);
  const { version = MIGRATIONS.length } = store ?? {};
  assertKnownVersion(version);
  // An older table gets its columns by an upgrade.
  if (misfit !== null && version === MIGRATIONS.length) throw new Error(misfit);
  return { ...store, risk };
}

/** @throws Error when plants could be rejected, changed or lost in this session, or when it is not in the store in use */
export async function verifySession(
  session: ClientBase,
  store: FoundStore | undefined,
): Promise<void> {
  const found = await findStore(session);
  if (found && found.identity === store?.identity) return;
  throw new Error(
    `this is not the store that was in use before (expected ${describe(store)}, found ${describe(found)}). Restore that store, or restart the service to use this one`,
  );
}

function describe(store: FoundStore | undefined): string {
  return store ? `store ${store.identity ?? 'without an identity'}` : 'no table plants';
}

/**
 * Finds, creates or upgrades the store. Any number of instances may do so at once. A table `plants` that the operator
 * prepared (partitioned, distributed) is never changed.
 * @throws Error when it cannot be used
 */
export async function prepareStore(session: ClientBase): Promise<FoundStore | undefined> {
  const found = await findStore(session);
  const { version = MIGRATIONS.length } = found ?? { version: 0 };
  if (version === MIGRATIONS.length) return found;
  await migrate(session);
  return findStore(session);
}

async function migrate(session: ClientBase): Promise<void> {
  await session.query(BEGIN_EXCLUSIVE);
  const { version } = await readVersion(session);
  const statements = migrationsAfter(version, 'postgres');
  await session.query([...statements, RECORD_VERSION, 'COMMIT'].join(';'));
  logUpgrade(version);
}

async function readVersion(
  session: ClientBase,
): Promise<{ version: number; identity: string | undefined }> {
  const { rows } = await session.query<{ version: string; identity: string | null }>(READ_VERSION);
  return { version: Number(rows[0]?.version), identity: rows[0]?.identity ?? undefined };
}
