import { hash } from 'node:crypto';
import type { ClientBase, QueryConfig } from 'pg';
import {
  CONTENT_PROPERTIES,
  type Plant,
  PLANT_COLUMNS,
  plantFromRow,
  type PlantRow,
} from '../../plant';
import type { KeyedPlant } from '../keyed-plant';
import type { PlantRange } from '../store-driver';
import { findReach } from './postgres.errors';

/*
 * This file depends on undocumented behavior of PostgreSQL 15 and 18: the commit of a
 * transaction is synced and waits for the standbys even if all its inserts were rolled back to a savepoint.
 */

const CANCELED_WAIT_MESSAGE = 'the wait for the synchronous standby was canceled';

/** The columns of an insert, with their types. */
const INSERT_COLUMNS = [
  ['id', 'bigint'],
  ...CONTENT_PROPERTIES.map((name) => [name, 'text']),
  ['idempotency_key', 'bytea'],
];
const INSERT_LIST = INSERT_COLUMNS.map(([name]) => name).join(', ');

/**
 * Inserts plants. It returns ids as text, because `binary` in the settings or in the process-wide defaults of the
 * driver would return binary results.
 */
const INSERT = `
  INSERT INTO plants (${INSERT_LIST})
  SELECT * FROM unnest(${INSERT_COLUMNS.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')})
  ON CONFLICT (id) DO NOTHING RETURNING id::text`;
/** The name of the prepared statement. A pooled session may hold one that another version of this program prepared. */
const INSERT_NAME = `plants-${hash('sha1', INSERT)}`;

/**
 * Inserts rows, and undoes that. Their ids are random, so that they conflict with neither plants nor the rows of other
 * instances. They are so many that they spread over the shards of a cluster. Without the limit, the sessions of several
 * probes could wait for a lock.
 */
const INSERT_NOTHING = `
  BEGIN;
  SET LOCAL lock_timeout = '1s';
  SAVEPOINT probe;
  INSERT INTO plants (${INSERT_LIST})
    SELECT random() * 9e18, ${CONTENT_PROPERTIES.map(() => "'probe'").join(', ')}, NULL
    FROM generate_series(1, 32) ON CONFLICT (id) DO NOTHING;
  ROLLBACK TO SAVEPOINT probe`;

/**
 * Inserts a plant that exists, and undoes that. It succeeds if the table rejects only some plants, such as the rows
 * of a probe, and fails if a trigger or a constraint rejects every plant.
 */
const INSERT_EXISTING = `
  ROLLBACK;
  BEGIN;
  INSERT INTO plants (${INSERT_LIST})
    SELECT ${INSERT_LIST} FROM plants LIMIT 1 ON CONFLICT (id) DO NOTHING;
  ROLLBACK`;

/**
 * Finds plants by id, with content and key only if the key is one of the given ones. It is not prepared: a plan from a
 * time when the table was small would read the whole table later.
 */
const FIND_STORED = `
  SELECT id::text, ${[...CONTENT_PROPERTIES, "encode(idempotency_key, 'hex')"]
    .map((value) => `CASE WHEN idempotency_key = ANY ($2) THEN ${value} END`)
    .join(', ')}, current_setting('synchronous_standby_names', true)
  FROM plants WHERE id = ANY ($1)`;

/** Reads the plants of a range. The id is read as text, which keeps all its digits. */
const READ_PAGE = `
  SELECT id::text, ${CONTENT_PROPERTIES.join(', ')} FROM plants
  WHERE id BETWEEN $1 AND $2 ORDER BY plants.id LIMIT $3`;

type IdRow = Record<'id', string>;

/**
 * Inserts plants with different ids in one transaction.
 *
 * @returns the ids that were inserted, once the plants are committed
 */
export async function insertPlants(
  client: ClientBase,
  plants: readonly KeyedPlant[],
  isPrepared: boolean,
): Promise<Set<bigint>> {
  const columns = PLANT_COLUMNS.map((column) => plants.map((plant) => plant[column]));
  const query = { text: INSERT, values: [...columns, toByteas(plants)] };
  const name = isPrepared ? INSERT_NAME : undefined;
  const { rows, hasWarned } = await execute(client, { ...query, name });
  // The server reports success, with a warning, if the wait for a synchronous standby was canceled.
  if (hasWarned) {
    await commitNothing(client).catch((cause: unknown) => {
      throw new Error(CANCELED_WAIT_MESSAGE, { cause });
    });
  }
  return new Set(rows.map(({ id }) => BigInt(id)));
}

/**
 * Finds the stored plants that have the ids of some plants. A plant without one of their keys has no content.
 *
 * @returns the stored plants by id, once those with content are as durable as plants that this session inserted
 */
export async function findStored(
  client: ClientBase,
  plants: readonly KeyedPlant[],
): Promise<Map<bigint, KeyedPlant>> {
  const values = [plants.map(({ id }) => id), toByteas(plants)];
  const query = { text: FIND_STORED, values, rowMode: 'array' } as const;
  const { rows } = await client.query<PlantRow>(query);
  const found = rows.map((row) => {
    const [keyDigest, standbys] = row.slice(PLANT_COLUMNS.length) as (string | null)[];
    return { ...plantFromRow(row), keyDigest: keyDigest ?? undefined, standbys };
  });
  // Normally, a plant becomes visible after its commit was replicated. It can be visible earlier if the wait
  // for the standby was canceled, or if the server crashed during the wait and restarted.
  if (found.some(({ keyDigest, standbys }) => keyDigest && standbys)) await commitNothing(client);
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

function toByteas(plants: readonly KeyedPlant[]): (string | undefined)[] {
  return plants.map(({ keyDigest }) => keyDigest && `\\x${keyDigest}`);
}

/** Does what a commit does, and stores nothing. */
export async function probe(client: ClientBase): Promise<void> {
  try {
    await commitNothing(client);
  } catch (error) {
    if (findReach(error) !== 'row') throw error;
    // The table may reject only the rows of a probe.
    await client.query(INSERT_EXISTING);
  }
}

/**
 * Commits a transaction that inserts rows and rolls them back to a savepoint. It needs the privileges of an
 * insert and meets the same locks, triggers and shards. Its commit is synced, and waits until the standbys
 * have everything that was committed before it. If it fails, the session cannot be used again.
 */
async function commitNothing(client: ClientBase): Promise<void> {
  await client.query(INSERT_NOTHING);
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
