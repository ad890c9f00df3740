import type { ClientBase, QueryResult } from 'pg';
import { CONTENT_PROPERTIES } from '../../plant/plant';
import { isProduction } from '../../environment';
import { assertKnownVersion, MIGRATIONS, migrationsAfter } from '../migrations';
import { logUpgrade } from '../upgrade-log';
import { CHECKS, RISK_CHECK, SESSION_SETTINGS } from './postgres.checks';

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

/**
 * Records the current version, unless another instance has done so while this one waited for the lock. The first row
 * gets the identity of the store.
 */
const RECORD_VERSION = `
  INSERT INTO plants_migrations (version, identity)
  SELECT ${MIGRATIONS.length}, CASE WHEN NOT EXISTS (SELECT FROM plants_migrations) THEN gen_random_uuid() END
  ON CONFLICT DO NOTHING`;

const READ_VERSION = `
  SELECT coalesce(max(version), 0)::text AS version, max(identity::text) AS identity
  FROM plants_migrations`;

/** Finds the tables in the search path of the session. */
const FIND_TABLES = `
  SELECT to_regclass('plants')::text AS plants, to_regclass('plants_migrations')::text AS migrations`;

const FIND_COLUMNS = `
  SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
  WHERE attrelid = to_regclass('plants') AND attnum > 0 AND NOT attisdropped`;

type TablesRow = Record<'plants' | 'migrations', string | null>;
type ColumnRow = Record<'name' | 'type', string>;
type CheckRow = Record<'found', string>;

/** A table `plants`, as it was found. If the operator prepared it, it has no version and no identity. */
export interface FoundStore {
  readonly version?: number;
  readonly identity?: string | undefined;
  /** Why a crash of the machine could lose plants; undefined if it cannot. Outside production, it is accepted. */
  readonly risk: string | undefined;
}

/**
 * Finds the store; undefined if there is none.
 * @throws Error when plants could be rejected, changed or lost in this session, or when the store is incomplete or
 * newer
 */
export function findStore(session: ClientBase): Promise<FoundStore | undefined> {
  return setAndFindStore(session, []);
}

/** Does the same after it has changed settings of the session by statements, all in one round trip. */
async function setAndFindStore(
  session: ClientBase,
  settings: readonly string[],
): Promise<FoundStore | undefined> {
  const checks = isProduction(process.env) ? [RISK_CHECK, ...CHECKS] : CHECKS;
  const questions = [
    FIND_TABLES,
    FIND_COLUMNS,
    RISK_CHECK.query,
    ...checks.map(({ query }) => query),
  ];
  const results = await queryEach(session, [...settings, ...questions]);
  const [[tables], columns, risks, ...answers] = results.slice(settings.length) as [
    TablesRow[],
    ColumnRow[],
    CheckRow[],
    ...CheckRow[][],
  ];

  // Even if there is no table yet: none must be created through such a session.
  checks.forEach(({ explain }, at) => {
    const reason = answers[at]?.[0];
    if (reason) throw new Error(explain(reason.found));
  });
  if (tables?.plants == null) return undefined;
  const store = tables.migrations === null ? undefined : await readVersion(session);
  const { version = MIGRATIONS.length } = store ?? {};
  assertKnownVersion(version);
  // An older table gets its columns by an upgrade.
  if (version === MIGRATIONS.length) assertColumnsFit(columns);
  const [risk] = risks;
  return { ...store, risk: risk && RISK_CHECK.explain(risk.found) };
}

/**
 * Sends queries in one message, which is one round trip and one transaction. A reload of the server's settings takes
 * effect before or after it.
 * @returns the rows of each
 */
async function queryEach(session: ClientBase, queries: readonly string[]): Promise<unknown[][]> {
  const results: unknown = await session.query(queries.join(';'));
  return (results as QueryResult<Record<string, unknown>>[]).map(({ rows }) => rows);
}

/** A `varchar` is a text; one with a length would cut off spaces. */
function assertColumnsFit(columns: readonly ColumnRow[]): void {
  const types = new Map(columns.map(({ name, type }) => [name, type]));
  for (const [name, required] of COLUMNS) {
    const found = types.get(name);
    const isText = required === 'text' && found === 'character varying';
    if (found === required || isText) continue;
    throw new Error(
      `the column ${name} of plants must be ${required}, but is ${found ?? 'missing'}`,
    );
  }
}

/**
 * Sets what a session must be like, and checks it.
 * @throws Error when plants could be rejected, changed or lost in this session, or when it is not in the store in use
 */
export async function verifySession(
  session: ClientBase,
  store: FoundStore | undefined,
): Promise<void> {
  const found = await setAndFindStore(session, SESSION_SETTINGS);
  if (found && found.identity === store?.identity) return;
  throw new Error(
    `this is not the store that was in use before (expected ${describeIdentity(store)}, found ${describeIdentity(found)}). Restore that store, or restart the service to use this one`,
  );
}

function describeIdentity(store: FoundStore | undefined): string {
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

/** Creates or upgrades the tables. If a statement fails, the end of the session rolls all of them back. */
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
