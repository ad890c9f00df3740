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
import { PAGE_TEXT_LIMIT, type PlantRange } from '../store-driver';
import { isCancelledWait } from './postgres.errors';

/*
 * This file depends on undocumented behaviour of PostgreSQL 15 and 18 and Citus 13.2: the commit of a
 * transaction is synced and waits for the standbys even if all its inserts were rolled back to a savepoint.
 */

/** The columns to read. The id is read as text, which keeps all its digits. */
const SELECT_LIST = ['id::text', ...CONTENT_PROPERTIES].join(', ');
/** The number of bytes of the strings in a row. */
const TEXT_BYTES = CONTENT_PROPERTIES.map((column) => `coalesce(octet_length(${column}), 0)`).join(
  ' + ',
);

const INSERT = createInsertStatement(false);
const INSERT_KEYED = createInsertStatement(true);

/**
 * Creates the INSERT statement. It has no conflict target, so that a table may enforce unique ids in any way.
 * It returns ids as text, because `binary` in the settings or in the process-wide defaults of the driver would
 * return binary results.
 */
function createInsertStatement(isKeyed: boolean): { name: string; text: string } {
  const columns = [
    ['id', 'bigint'],
    ...CONTENT_PROPERTIES.map((name) => [name, 'text']),
    ...(isKeyed ? [['idempotency_key', 'bytea']] : []),
  ];
  const text = `
    INSERT INTO plants (${columns.map(([name]) => name).join(', ')})
    SELECT * FROM unnest(${columns.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')})
    ON CONFLICT DO NOTHING RETURNING id::text`;
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

/** Time limits of a probe if the operator has set none, so that no session is left waiting for a lock. */
const PROBE_LIMITS_MS = { lock_timeout: 1000, statement_timeout: 2000 };

/**
 * Finds plants by id and key. It is not prepared: a plan from a time when the table was small would read the
 * whole table later.
 */
const FIND_KEYED = `
  SELECT encode(idempotency_key, 'hex'), current_setting('synchronous_standby_names', true), ${SELECT_LIST}
  FROM plants WHERE id = ANY ($1) AND idempotency_key = ANY ($2)`;

/**
 * Reads the plants of a range, up to the plant whose text exceeds the limit. octet_length does not load long
 * values, which PostgreSQL stores out of line.
 */
const READ_PAGE = `
  SELECT ${SELECT_LIST} FROM plants
  WHERE id BETWEEN $1 AND (
    SELECT max(id) FROM (
      SELECT id, sum(size) OVER (ORDER BY id) - size AS text_before FROM (
        SELECT id, ${TEXT_BYTES} AS size FROM plants
        WHERE id BETWEEN $1 AND $2 ORDER BY id LIMIT $3
      ) AS sizes
    ) AS page WHERE text_before <= ${PAGE_TEXT_LIMIT})
  ORDER BY plants.id LIMIT $3`;

/** Reads one plant. It uses `=`, so that a cluster queries only one shard. */
const READ_ONE = `SELECT ${SELECT_LIST} FROM plants WHERE id = $1`;

/** A row of {@link FIND_KEYED}. `standbys` is null if the server has no such setting. */
type KeyedRow = [digest: string, standbys: string | null, ...row: PlantRow];

/**
 * Inserts plants with different ids in one transaction.
 *
 * @returns the ids that did not exist yet, once the plants are committed
 */
export async function insertPlants(
  client: ClientBase,
  plants: readonly KeyedPlant[],
  isPrepared: boolean,
): Promise<Set<bigint>> {
  const isKeyed = plants.some(({ keyDigest }) => keyDigest !== undefined);
  const { name, text } = isKeyed ? INSERT_KEYED : INSERT;
  const columns = PLANT_COLUMNS.map((column) => plants.map((plant) => plant[column]));
  const values = isKeyed ? [...columns, toByteas(plants)] : columns;
  const rows = await executeDurably(client, { ...(isPrepared && { name }), text, values });
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
  // for the standby was cancelled, or if the server crashed during the wait and restarted.
  if (rows.some(([, standbys]) => standbys)) await commitNothing(client);
  const found = rows.map(([keyDigest, , ...row]) => ({ ...plantFromRow(row), keyDigest }));
  return new Map(found.map((plant) => [plant.id, plant]));
}

export async function readPlants(
  client: ClientBase,
  { from, to, limit }: PlantRange,
): Promise<Plant[]> {
  const query =
    from === to
      ? { text: READ_ONE, values: [from] }
      : { text: READ_PAGE, values: [from, to, limit] };
  const { rows } = await client.query<PlantRow>({ ...query, rowMode: 'array' });
  return rows.map(plantFromRow);
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
    // Uses commands, because functions such as set_config may need another privilege.
    for (const [name, limit] of isProbe ? Object.entries(PROBE_LIMITS_MS) : []) {
      const { rows } = await client.query<Record<string, string>>(`SHOW ${name}`);
      if (rows[0]?.[name] === '0') await client.query(`SET LOCAL ${name} = ${limit}`);
    }
    await client.query('SAVEPOINT probe');
    await insertPlants(client, PROBE_ROWS, false);
    await client.query('ROLLBACK TO SAVEPOINT probe');
  } catch (error) {
    // After any other error the session is closed.
    if (error instanceof DatabaseError) await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
  await executeDurably(client, { text: 'COMMIT' });
}

/**
 * Runs a statement that is a transaction of its own or a COMMIT. Resolves once it is committed: the driver
 * resolves at the ReadyForQuery message of the server, which follows the commit.
 *
 * @throws Error when the server did not wait for its synchronous standby
 */
async function executeDurably(client: ClientBase, query: QueryConfig): Promise<{ id: string }[]> {
  const warnings: unknown[] = [];
  const onNotice = (notice: Partial<DatabaseError>): void => {
    if (isCancelledWait(notice)) warnings.push(notice);
  };
  client.on('notice', onNotice);
  try {
    const { rows } = await client.query<{ id: string }>(query);
    if (warnings.length > 0) throw new Error('the wait for the synchronous standby was cancelled');
    return rows;
  } finally {
    client.off('notice', onNotice);
  }
}
