import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import {
  CONTENT_PROPERTIES,
  type Plant,
  PLANT_COLUMNS,
  plantFromRow,
  type PlantRow,
  textLength,
} from '../../plant';
import type { InsertOutcome } from '../../plants.repository';
import { type KeyedPlant, duplicateOutcome } from '../keyed-plant';
import { PAGE_TEXT_LIMIT, type PlantRange } from '../store-driver';

/** The prepared statements of a connection. */
export type Statements = Readonly<Record<'insert' | 'selectKeyed' | 'select', StatementSync>>;

const COLUMNS = PLANT_COLUMNS.join(', ');

export function prepareStatements(database: DatabaseSync): Statements {
  const statements = {
    insert: database.prepare(
      `INSERT INTO plants (${COLUMNS}, idempotency_key) VALUES (${'?, '.repeat(PLANT_COLUMNS.length)}?) ON CONFLICT DO NOTHING`,
    ),
    selectKeyed: database.prepare(
      `SELECT ${COLUMNS} FROM plants WHERE id = ? AND idempotency_key = ?`,
    ),
    select: database.prepare(
      `SELECT ${COLUMNS} FROM plants WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?`,
    ),
  };
  // Node.js 22 does not know the option `returnArrays` of prepare().
  statements.selectKeyed.setReturnArrays(true);
  statements.select.setReturnArrays(true);
  return statements;
}

export function insertPlant({ insert, selectKeyed }: Statements, plant: KeyedPlant): InsertOutcome {
  const { id, keyDigest } = plant;
  const key = keyDigest === undefined ? null : Buffer.from(keyDigest, 'hex');
  const values: SQLInputValue[] = [id];
  for (const property of CONTENT_PROPERTIES) values.push(plant[property] ?? null);
  values.push(key);
  if (Number(insert.run(...values).changes) === 1) return 'created';
  const row = key && (selectKeyed.get(id, key) as unknown as PlantRow | undefined);
  return duplicateOutcome(row ? { ...plantFromRow(row), keyDigest } : undefined, plant);
}

export function readPlants({ select }: Statements, { from, to, limit }: PlantRange): Plant[] {
  const plants: Plant[] = [];
  let text = 0;
  for (const row of select.iterate(from, to, limit)) {
    const plant = plantFromRow(row as unknown as PlantRow);
    plants.push(plant);
    text += textLength(plant);
    if (text > PAGE_TEXT_LIMIT) break;
  }
  return plants;
}
