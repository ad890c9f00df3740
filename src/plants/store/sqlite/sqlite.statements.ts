import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import {
  CONTENT_PROPERTIES,
  type Plant,
  PLANT_COLUMNS,
  plantFromRow,
  type PlantRow,
} from '../../plant/plant';
import type { InsertOutcome } from '../../plants.repository';
import { type KeyedPlant, duplicateOutcome } from '../idempotency';
import type { PlantRange } from '../store-driver';
import type { SqliteFailure } from './sqlite.driver';
import { extendedCodeOf, isRowRejection } from './sqlite.errors';

/** A session of SQLite, and the statements that were prepared in it. */
export interface Statements {
  readonly database: DatabaseSync;
  readonly insert: StatementSync;
  readonly selectOne: StatementSync;
  readonly selectRange: StatementSync;
}

const COLUMNS = PLANT_COLUMNS.join(', ');

/** Prepares the statements. @throws Error when the table lacks a column */
export function prepareStatements(database: DatabaseSync): Statements {
  const values = '?, '.repeat(PLANT_COLUMNS.length);
  const statements = {
    database,
    insert: database.prepare(
      `INSERT INTO plants (${COLUMNS}, idempotency_key) VALUES (${values}?) ON CONFLICT (id) DO NOTHING`,
    ),
    selectOne: database.prepare(`SELECT hex(idempotency_key), ${COLUMNS} FROM plants WHERE id = ?`),
    selectRange: database.prepare(
      `SELECT ${COLUMNS} FROM plants WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?`,
    ),
  };
  // Node.js 22 does not know the option `returnArrays` of prepare().
  statements.selectOne.setReturnArrays(true);
  statements.selectRange.setReturnArrays(true);
  return statements;
}

/** Inserts a plant in the current transaction. If the database rejects it, the transaction goes on without it. */
export function insertPlant(
  { database, insert, selectOne }: Statements,
  plant: KeyedPlant,
): InsertOutcome | SqliteFailure {
  const { id, keyDigest } = plant;
  const values: SQLInputValue[] = [id];
  for (const property of CONTENT_PROPERTIES) values.push(plant[property] ?? null);
  values.push(keyDigest === undefined ? null : Buffer.from(keyDigest, 'hex'));
  try {
    // A bigint, because the session reads ids as bigints.
    if (Number(insert.run(...values).changes) === 1) return 'created';
  } catch (error) {
    // A trigger may also have rolled back the whole transaction.
    if (!isRowRejection(error) || !database.isTransaction) throw error;
    return createRowFailure((error as Error).message, extendedCodeOf(error));
  }
  const found = selectOne.get(id) as unknown as [key: string, ...row: PlantRow] | undefined;
  if (found === undefined) {
    return createRowFailure(
      'a trigger of the table plants ignored a plant, which is not supported',
    );
  }
  // hex() turns NULL into an empty string, which is the digest of no key.
  const [storedKey, ...row] = found;
  return duplicateOutcome({ ...plantFromRow(row), keyDigest: storedKey.toLowerCase() }, plant);
}

function createRowFailure(reason: string, code?: number): SqliteFailure {
  return { kind: 'row', reach: 'batch', reason, code };
}

/** Reads the plants of a range in id order. */
export function readPlants({ selectRange }: Statements, { from, to, limit }: PlantRange): Plant[] {
  return selectRange.all(from, to, limit).map((row) => plantFromRow(row as unknown as PlantRow));
}
