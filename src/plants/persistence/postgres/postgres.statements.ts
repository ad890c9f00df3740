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
 * This file depends on undocumented behavior of PostgreSQL 15 and 18 and Citus 13.2: the commit of a
 * transaction is synced and waits for the standbys even if all its inserts were rolled back to a savepoint.
 */

/** Reads the columns, with the id as text, which keeps all its digits. */
const SELECTED = ['id::text', ...CONTENT_PROPERTIES].join(', ');
/** How many bytes the strings of a row have. */
const SIZE = CONTENT_PROPERTIES.map((column) => `coalesce(octet_length(${column}), 0)`).join(' + ');

const INSERT = insertStatement(false);
const INSERT_KEYED = insertStatement(true);

/**
 * No conflict target, so that a table may enforce unique ids in any way. Ids come back as text, since
 * `binary` in the settings or in the driver's process-wide defaults asks for binary results.
 */
function insertStatement(isKeyed: boolean): { name: string; text: string } {
  const columns = [
    ['id', 'bigint'],
    ...CONTENT_PROPERTIES.map((name) => [name, 'text']),
    ...(isKeyed ? [['idempotency_key', 'bytea']] : []),
  ];
  const text = `
    INSERT INTO plants (${columns.map(([name]) => name).join(', ')})
    SELECT * FROM unnest(${columns.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')})
    ON CONFLICT DO NOTHING RETURNING id::text`;
  // A session may have the statement of another version of the program.
  return { name: `plants-${hash('sha1', text)}`, text };
}

/**
 * Rows with random ids, so that they meet neither plants nor the rows of other instances; so many that
 * they spread over the shards of a cluster.
 */
const PROBES: readonly KeyedPlant[] = Array.from({ length: 32 }, () => ({
  id: randomBytes(8).readBigUInt64BE() >> 1n,
  name: 'probe',
}));

/** Limits of a probe, in milliseconds, where the operator has set none: no session is left waiting for a lock. */
const PROBE_LIMITS = { lock_timeout: 1000, statement_timeout: 2000 };

/** Not prepared: a plan that was made while the table was small would read the whole table later. */
const FIND_KEYED = `
  SELECT encode(idempotency_key, 'hex'), current_setting('synchronous_standby_names', true), ${SELECTED}
  FROM plants WHERE id = ANY ($1) AND idempotency_key = ANY ($2)`;

/**
 * The plants of a range, up to the one whose text exceeds the limit. Measuring reads no long text, which
 * PostgreSQL keeps beside the row.
 */
const READ_PAGE = `
  SELECT ${SELECTED} FROM plants
  WHERE id BETWEEN $1 AND (
    SELECT max(id) FROM (
      SELECT id, sum(size) OVER (ORDER BY id) - size AS text_before FROM (
        SELECT id, ${SIZE} AS size FROM plants
        WHERE id BETWEEN $1 AND $2 ORDER BY id LIMIT $3
      ) AS sizes
    ) AS page WHERE text_before <= ${PAGE_TEXT_LIMIT})
  ORDER BY plants.id LIMIT $3`;

/** Equal to an id, so that a cluster asks one shard. */
const READ_ONE = `SELECT ${SELECTED} FROM plants WHERE id = $1`;

/** `standbys` is null where the server has no such setting. */
type KeyedRow = [digest: string, standbys: string | null, ...row: PlantRow];

/**
 * Inserts plants with different ids in one transaction.
 *
 * @returns the ids that were free, once the plants are committed
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
  const rows = await commitOn(client, { ...(isPrepared && { name }), text, values });
  return new Set(rows.map(({ id }) => BigInt(id)));
}

/**
 * Finds the plants that have the ids of other plants, and the same keys.
 *
 * @returns by id, once they are as durable as plants that this session has inserted
 */
export async function findKeyed(
  client: ClientBase,
  plants: readonly KeyedPlant[],
): Promise<Map<bigint, KeyedPlant>> {
  const ids = plants.map(({ id }) => id);
  const values = [ids, toByteas(plants)];
  const { rows } = await client.query<KeyedRow>({ text: FIND_KEYED, values, rowMode: 'array' });
  // A plant is visible once its commit has been replicated. But it is visible before, if the wait
  // for the standby was cancelled, or if the server has crashed in it and started again.
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
 * Commits a transaction that inserts rows and undoes that: it needs the privileges of an insert, meets the
 * same locks, triggers and shards, is synced, and waits until the standbys have everything before it.
 *
 * @param isProbe whether it may not wait for long
 */
export async function commitNothing(client: ClientBase, isProbe = false): Promise<void> {
  await client.query('BEGIN');
  try {
    // Commands, since functions such as set_config may need another privilege.
    for (const [name, limit] of isProbe ? Object.entries(PROBE_LIMITS) : []) {
      const { rows } = await client.query<Record<string, string>>(`SHOW ${name}`);
      if (rows[0]?.[name] === '0') await client.query(`SET LOCAL ${name} = ${limit}`);
    }
    await client.query('SAVEPOINT probe');
    await insertPlants(client, PROBES, false);
    await client.query('ROLLBACK TO SAVEPOINT probe');
  } catch (error) {
    // After any other error the session is closed.
    if (error instanceof DatabaseError) await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
  await commitOn(client, { text: 'COMMIT' });
}

/**
 * Runs a statement that is a transaction of its own, and resolves once it is committed: the driver
 * resolves at the server's ReadyForQuery, which follows the commit.
 */
async function commitOn(client: ClientBase, query: QueryConfig): Promise<{ id: string }[]> {
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
