import { hash } from 'node:crypto';
import type { ClientBase, DatabaseError, QueryConfig } from 'pg';
import {
  CONTENT_PROPERTIES,
  type Plant,
  PLANT_COLUMNS,
  plantFromRow,
  type PlantRow,
} from '../../plant/plant';
import type { KeyedPlant } from '../idempotency';
import type { PlantRange } from '../store-driver';
import { classifyError, type ErrorReport } from './postgres.errors';
import { COLUMNS } from './postgres.schema';
import { isAboutCommit } from './postgres.warnings';

type InsertedRow = Record<'id', string>;

const INSERT_LIST = COLUMNS.map(([name]) => name).join(', ');

/** Returns ids as text, because `binary` in the settings or defaults of the driver would return binary results. */
const INSERT = `
  INSERT INTO plants (${INSERT_LIST})
  SELECT * FROM unnest(${COLUMNS.map(([, type], at) => `$${at + 1}::${type}[]`).join(', ')})
  ON CONFLICT (id) DO NOTHING RETURNING id::text`;
/** The name of the prepared statement. A pooled session may hold one that another version of this program prepared. */
const INSERT_NAME = `plants-${hash('sha1', INSERT)}`;

/** Begins a transaction that does not wait: its statements fail soon if a row is locked, or takes long. */
const BEGIN_IMPATIENT =
  "BEGIN; SET LOCAL lock_timeout = '30ms'; SET LOCAL statement_timeout = '100ms'";

/** Begins a transaction that inserts plants one by one, and so may take longer. */
const BEGIN_EACH = "BEGIN; SET LOCAL lock_timeout = '30ms'; SET LOCAL statement_timeout = '500ms'";

/** A DO block has neither parameters nor a result. Settings that end with the transaction serve as both. */
const WRITE_EACH = "SELECT FROM set_config('plant_store.plants', $1, true)";
const READ_EACH = "SELECT current_setting('plant_store.results') AS results";

/** Inserts each plant in a block of its own (a subtransaction): an error undoes this block, and the next one follows. */
const INSERT_EACH = `
  DO $$
  DECLARE
    plant record;
    violated text;
    inserted text[] := '{}';
    failed jsonb := '[]';
  BEGIN
    FOR plant IN
      SELECT * FROM json_to_recordset(current_setting('plant_store.plants')::json)
      AS plants (${COLUMNS.map((column) => column.join(' ')).join(', ')})
    LOOP
      BEGIN
        INSERT INTO plants (${INSERT_LIST})
        VALUES (${COLUMNS.map(([name]) => `plant.${name}`).join(', ')})
        ON CONFLICT (id) DO NOTHING;
        IF FOUND THEN inserted := inserted || plant.id::text; END IF;
      EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS violated = CONSTRAINT_NAME;
        failed := failed || jsonb_build_object('id', plant.id::text,
          'code', SQLSTATE, 'message', SQLERRM, 'constraint', violated);
      END;
    END LOOP;
    PERFORM set_config('plant_store.results',
      json_build_object('inserted', inserted, 'failed', failed)::text, true);
  END $$`;

/** The results of {@link INSERT_EACH}. A plant whose id is taken, or which a trigger skipped, is in neither list. */
interface EachJson {
  readonly inserted: readonly string[];
  readonly failed: readonly Record<'id' | 'code' | 'message' | 'constraint', string>[];
}

/** Begins a transaction that inserts rows, and undoes that. */
const insertAndUndo = (rows: string): string => `
  BEGIN;
  SAVEPOINT probe;
  INSERT INTO plants (${INSERT_LIST}) ${rows} ON CONFLICT (id) DO NOTHING;
  ROLLBACK TO SAVEPOINT probe`;

/**
 * The ids are random, so that they conflict with no others, and so many that they spread over the shards of a cluster.
 */
const INSERT_NOTHING = insertAndUndo(`
  SELECT random() * 9e18, ${CONTENT_PROPERTIES.map(() => "'probe'").join(', ')}, NULL
  FROM generate_series(1, 32)`);

/** Uses a plant that exists. It fails if the table rejects every plant, not only the rows of a probe. */
const INSERT_EXISTING = `ROLLBACK; ${insertAndUndo(`SELECT ${INSERT_LIST} FROM plants LIMIT 1`)}`;

/** Stores nothing, but writes to the log of the server, so that its commit is synced and waits for the standbys. */
const EMIT_MESSAGE = "SELECT pg_logical_emit_message(true, 'plant-store', '')";

/** It is not prepared: a plan from a time when the table was small would read the whole table later. */
const FIND_STORED = `
  SELECT id::text, ${[...CONTENT_PROPERTIES, "encode(idempotency_key, 'hex')"]
    .map((value) => `CASE WHEN idempotency_key = ANY ($2) THEN ${value} END`)
    .join(', ')}, current_setting('synchronous_standby_names', true)
  FROM plants WHERE id = ANY ($1)`;

/** It sorts by the column of the table: `id` alone would mean the text in the result. */
const READ_PAGE = `
  SELECT id::text, ${CONTENT_PROPERTIES.join(', ')} FROM plants
  WHERE id BETWEEN $1 AND $2 ORDER BY plants.id LIMIT $3`;

/** Commits plants with different ids in one transaction. Resolves to the ids that were inserted. */
export async function insertPlants(
  session: ClientBase,
  plants: readonly KeyedPlant[],
  isPrepared: boolean,
): Promise<bigint[]> {
  const rows = await commitDurably(session, createInsert(plants, isPrepared));
  return rows.map(({ id }) => BigInt(id));
}

/** Does the same, but hardly waits for the transactions of others. The commit itself takes as long as it must. */
export async function insertPlantsOrGiveUp(
  session: ClientBase,
  plants: readonly KeyedPlant[],
  isPrepared: boolean,
): Promise<bigint[]> {
  // The insert is sent only if this succeeds: without a transaction, it would be committed alone.
  await session.query(BEGIN_IMPATIENT);
  const [{ rows }] = await Promise.all([
    session.query<InsertedRow>(createInsert(plants, isPrepared)),
    // If the insert fails, COMMIT rolls back.
    commitDurably(session, { text: 'COMMIT' }),
  ]);
  return rows.map(({ id }) => BigInt(id));
}

/** What became of plants that were inserted one by one. A plant whose id is taken is in neither list. */
interface EachInserted {
  readonly inserted: readonly bigint[];
  readonly failed: readonly { readonly id: bigint; readonly error: ErrorReport }[];
}

/**
 * Commits those of some plants that do not fail, in one transaction.
 * @throws Error when nothing was stored, for example because the database does not know PL/pgSQL
 */
export async function insertEachOrGiveUp(
  session: ClientBase,
  plants: readonly KeyedPlant[],
): Promise<EachInserted> {
  const keys = toByteas(plants);
  const rows = plants.map((plant, at) => {
    return { ...plant, id: String(plant.id), idempotency_key: keys[at] };
  });
  // Sent together, without waiting for responses. If one fails, the next ones fail, and COMMIT rolls back. If BEGIN
  // fails, the setting is gone before the block would read it.
  const [, , , read] = await Promise.all([
    session.query(BEGIN_EACH),
    session.query(WRITE_EACH, [JSON.stringify(rows)]),
    session.query(INSERT_EACH),
    session.query<Record<'results', string>>(READ_EACH),
    commitDurably(session, { text: 'COMMIT' }),
  ]);
  const { inserted, failed } = JSON.parse(read.rows[0]?.results ?? '') as EachJson;
  return {
    inserted: inserted.map(BigInt),
    failed: failed.map(({ id, message, ...fields }) => {
      return { id: BigInt(id), error: Object.assign(new Error(message), fields) };
    }),
  };
}

function createInsert(plants: readonly KeyedPlant[], isPrepared: boolean): QueryConfig {
  const columns = PLANT_COLUMNS.map((column) => plants.map((plant) => plant[column]));
  const values = [...columns, toByteas(plants)];
  return { ...(isPrepared && { name: INSERT_NAME }), text: INSERT, values };
}

/**
 * Finds the stored plants that have the ids of some plants. Those without one of their keys have no content. The others
 * are as durable as plants that this session inserted.
 */
export async function findStored(
  session: ClientBase,
  plants: readonly KeyedPlant[],
): Promise<Map<bigint, KeyedPlant>> {
  const values = [plants.map(({ id }) => id), toByteas(plants)];
  const query = { text: FIND_STORED, values, rowMode: 'array' } as const;
  const { rows } = await session.query<PlantRow>(query);
  const found = rows.map((row) => {
    const [keyDigest, standbys] = row.slice(PLANT_COLUMNS.length) as (string | null)[];
    return { ...plantFromRow(row), keyDigest: keyDigest ?? undefined, standbys };
  });
  // A plant can be visible before it was replicated: if the wait was canceled, or the server crashed during the wait.
  if (found.some(({ keyDigest, standbys }) => keyDigest && standbys)) {
    await commitDurably(session, { text: EMIT_MESSAGE });
  }
  return new Map(found.map((plant) => [plant.id, plant]));
}

/** Reads the plants of a range in id order. */
export async function readPlants(
  session: ClientBase,
  { from, to, limit }: PlantRange,
): Promise<Plant[]> {
  const query = { text: READ_PAGE, values: [from, to, limit], rowMode: 'array' } as const;
  const { rows } = await session.query<PlantRow>(query);
  return rows.map(plantFromRow);
}

function toByteas(plants: readonly KeyedPlant[]): (string | undefined)[] {
  return plants.map(({ keyDigest }) => keyDigest && `\\x${keyDigest}`);
}

/** Does what a commit does, with the same privileges, locks, triggers and shards, and stores nothing. */
export async function probe(session: ClientBase): Promise<void> {
  try {
    await session.query(INSERT_NOTHING);
  } catch (error) {
    if (classifyError(error) !== 'row') throw error;
    // The table may reject only the rows of a probe.
    await session.query(INSERT_EXISTING);
  }
  try {
    await session.query(EMIT_MESSAGE);
  } catch (error) {
    // A database that is not PostgreSQL may lack the function.
    if ((error as DatabaseError).code !== '42883') throw error;
    await session.query('ROLLBACK TO SAVEPOINT probe');
  }
  await commitDurably(session, { text: 'COMMIT' });
}

/**
 * Runs a statement that is a transaction of its own, or a COMMIT. The driver reports its success only after the
 * server's message ReadyForQuery, which follows the commit. The server reports success, with a warning, if the wait for
 * a synchronous standby was canceled: then this waits again.
 * @throws Error when the transaction is committed, but a standby may lack it
 */
async function commitDurably(session: ClientBase, query: QueryConfig): Promise<InsertedRow[]> {
  const commit = await queryWithWarnings(session, query);
  const [warning] = commit.warnings;
  if (warning === undefined) return commit.rows;

  const [secondWarning] = await queryWithWarnings(session, { text: EMIT_MESSAGE }).then(
    ({ warnings }) => warnings,
    (error: unknown) => [String(error)],
  );
  if (secondWarning === undefined) return commit.rows;
  throw new Error(`the server warned about a commit: ${warning}; ${secondWarning}`);
}

/** Runs a statement. Returns its rows, and the warnings that may concern its commit. */
async function queryWithWarnings(
  session: ClientBase,
  query: QueryConfig,
): Promise<{ rows: InsertedRow[]; warnings: string[] }> {
  const warnings: string[] = [];
  const onNotice = (notice: Record<'code' | 'message' | 'routine', string | undefined>): void => {
    if (isAboutCommit(notice)) warnings.push(String(notice.message));
  };
  session.on('notice', onNotice);
  try {
    const { rows } = await session.query<InsertedRow>(query);
    return { rows, warnings };
  } finally {
    session.off('notice', onNotice);
  }
}
