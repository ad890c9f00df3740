import { hash, randomBytes } from 'node:crypto';
import { type ClientBase, DatabaseError, type QueryConfig } from 'pg';
import {
  CONTENT_PROPERTIES,
  type Plant,
  PLANT_COLUMNS,
  plantFromRow,
  type PlantRow,
} from '../../plant';
import type { KeyedPlant } from '../keyed-plant';
import type { PlantRange } from '../store-driver';

/*
 * This file depends on undocumented behavior of PostgreSQL 15 and 18: the commit of a
 * transaction is synced and waits for the standbys even if all its inserts were rolled back to a savepoint.
 */

const CANCELED_WAIT_MESSAGE = 'the wait for the synchronous standby was canceled';

/** The columns to read. The id is read as text, which keeps all its digits. */
const SELECT_LIST = ['id::text', ...CONTENT_PROPERTIES].join(', ');
/** The columns of an insert, with their types. */
const INSERT_COLUMNS = [
  ['id', 'bigint'],
  ...CONTENT_PROPERTIES.map((name) => [name, 'text']),
  ['idempotency_key', 'bytea'],
];

/**
 * Inserts plants. It has no conflict target, so that a table may enforce unique ids in any way. It returns ids as
 * text, because `binary` in the settings or in the process-wide defaults of the driver would return binary results.
 */
export const INSERT = createInsertStatement('ON CONFLICT DO NOTHING');
/** Fails with the name of the constraint if one rejects a plant. */
export const INSERT_OR_FAIL = createInsertStatement('');

function createInsertStatement(onConflict: string): { name: string; text: string } {
  const text = `
    INSERT INTO plants (${INSERT_COLUMNS.map(([name]) => name).join(', ')})
    SELECT * FROM unnest(${INSERT_COLUMNS.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')})
    ${onConflict} RETURNING id::text`;
  // A pooled session may hold a statement that another version of this program prepared.
  return { name: `plants-${hash('sha1', text)}`, text };
}

/**
 * The rows of a probe. Their ids are random, so that they conflict with neither plants nor the rows of other
 * instances. They are so many that they spread over the shards of a cluster.
 */
const PROBE_ROWS: readonly KeyedPlant[] = Array.from({ length: 32 }, () => ({
  id: randomBytes(8).readBigUInt64BE() >> 1n,
  name: 'probe',
}));

/** Limits how long a probe waits if the operator has set no limits, so that no session waits for a lock. */
const LIMIT_WAITS = `
  SELECT set_config(name, CASE name WHEN 'lock_timeout' THEN '1000' ELSE '2000' END, true)
  FROM pg_settings WHERE name IN ('lock_timeout', 'statement_timeout') AND setting = '0'`;

/**
 * Finds plants by id and key. It is not prepared: a plan from a time when the table was small would read the
 * whole table later.
 */
const FIND_KEYED = `
  SELECT encode(idempotency_key, 'hex'), current_setting('synchronous_standby_names', true), ${SELECT_LIST}
  FROM plants WHERE id = ANY ($1) AND idempotency_key = ANY ($2)`;

const FIND_IDS = 'SELECT id::text FROM plants WHERE id = ANY ($1)';

const READ_PAGE = `SELECT ${SELECT_LIST} FROM plants WHERE id BETWEEN $1 AND $2 ORDER BY plants.id LIMIT $3`;

/**
 * Inserts a plant that exists, and undoes that. It succeeds if the table rejects only some plants, such as the rows
 * of a probe, and fails if a trigger or a constraint rejects every plant.
 */
export const INSERT_EXISTING = `
  BEGIN;
  INSERT INTO plants (${PLANT_COLUMNS.join(', ')})
    SELECT ${PLANT_COLUMNS.join(', ')} FROM plants LIMIT 1 ON CONFLICT DO NOTHING;
  ROLLBACK`;

type IdRow = Record<'id', string>;

/** A row of {@link FIND_KEYED}. `standbys` is null if the server has no such setting. */
type KeyedRow = [digest: string, standbys: string | null, ...row: PlantRow];

/**
 * Inserts plants with different ids in one transaction.
 *
 * @returns the ids that were inserted, once the plants are committed
 */
export async function insertPlants(
  client: ClientBase,
  plants: readonly KeyedPlant[],
  insert: typeof INSERT,
  isPrepared: boolean,
): Promise<Set<bigint>> {
  const { name, text } = insert;
  const values = toInsertValues(plants);
  const { rows, hasWarned } = await execute(client, { ...(isPrepared && { name }), text, values });
  // The server reports success, with a warning, if the wait for a synchronous standby was canceled.
  if (hasWarned) {
    await commitNothing(client).catch((cause: unknown) => {
      throw new Error(CANCELED_WAIT_MESSAGE, { cause });
    });
  }
  return new Set(rows.map(({ id }) => BigInt(id)));
}

/** Finds the ids of some plants that are in use. */
export async function findIds(
  client: ClientBase,
  plants: readonly KeyedPlant[],
): Promise<Set<bigint>> {
  const { rows } = await client.query<IdRow>(FIND_IDS, [plants.map(({ id }) => id)]);
  return new Set(rows.map(({ id }) => BigInt(id)));
}

/**
 * Finds the stored plants that have the ids and the keys of some plants.
 *
 * @returns the stored plants by id, once they are as durable as plants that this session inserted
 */
export async function findKeyed(
  client: ClientBase,
  plants: readonly KeyedPlant[],
): Promise<Map<bigint, KeyedPlant>> {
  const ids = plants.map(({ id }) => id);
  const values = [ids, toByteas(plants)];
  const { rows } = await client.query<KeyedRow>({ text: FIND_KEYED, values, rowMode: 'array' });
  // Normally, a plant becomes visible after its commit was replicated. It can be visible earlier if the wait
  // for the standby was canceled, or if the server crashed during the wait and restarted.
  if (rows.some(([, standbys]) => standbys)) await commitNothing(client);
  const found = rows.map(([keyDigest, , ...row]) => ({ ...plantFromRow(row), keyDigest }));
  return new Map(found.map((plant) => [plant.id, plant]));
}

export async function readPlants(
  client: ClientBase,
  { from, to, limit }: PlantRange,
): Promise<Plant[]> {
  const query = { text: READ_PAGE, values: [from, to, limit], rowMode: 'array' } as const;
  const { rows } = await client.query<PlantRow>(query);
  return rows.map(plantFromRow);
}

function toInsertValues(plants: readonly KeyedPlant[]): unknown[] {
  const columns = PLANT_COLUMNS.map((column) => plants.map((plant) => plant[column]));
  return [...columns, toByteas(plants)];
}

function toByteas(plants: readonly KeyedPlant[]): (string | undefined)[] {
  return plants.map(({ keyDigest }) => keyDigest && `\\x${keyDigest}`);
}

/**
 * Commits a transaction that inserts rows and rolls them back to a savepoint. It needs the privileges of an
 * insert and meets the same locks, triggers and shards. Its commit is synced, and waits until the standbys
 * have everything that was committed before it.
 *
 * @param isProbe whether to limit how long its statements may wait
 */
export async function commitNothing(client: ClientBase, isProbe = false): Promise<void> {
  await client.query('BEGIN');
  try {
    if (isProbe) await client.query(LIMIT_WAITS);
    await client.query('SAVEPOINT probe');
    await client.query(INSERT.text, toInsertValues(PROBE_ROWS));
    await client.query('ROLLBACK TO SAVEPOINT probe');
  } catch (error) {
    // After any other error the session is closed.
    if (error instanceof DatabaseError) await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
  const { hasWarned } = await execute(client, { text: 'COMMIT' });
  if (hasWarned) throw new Error(CANCELED_WAIT_MESSAGE);
}

/**
 * Runs a statement that is a transaction of its own or a COMMIT. Resolves once it is committed: the driver
 * resolves at the ReadyForQuery message of the server, which follows the commit.
 *
 * @returns the rows, and whether the server sent a warning (SQLSTATE class 01)
 */
async function execute(
  client: ClientBase,
  query: QueryConfig,
): Promise<{ rows: IdRow[]; hasWarned: boolean }> {
  let hasWarned = false;
  const onNotice = ({ code }: { code: string | undefined }): void => {
    hasWarned ||= code?.startsWith('01') === true;
  };
  client.on('notice', onNotice);
  try {
    const { rows } = await client.query<IdRow>(query);
    return { rows, hasWarned };
  } finally {
    client.off('notice', onNotice);
  }
}
