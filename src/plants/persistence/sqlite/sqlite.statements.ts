import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { type Plant, textLength } from '../../plant';
import type { Insertion } from '../../plants.repository';
import { type KeyedPlant, repetitionOutcome } from '../keyed-plant';
import { PAGE_TEXT_LIMIT, type PlantRange } from '../store-driver';

/** The prepared statements of a connection. */
export interface Statements {
  readonly insert: StatementSync;
  readonly selectKeyed: StatementSync;
  readonly select: StatementSync;
}

interface Row {
  readonly id: bigint;
  readonly name: string;
  readonly tag: string | null;
}

export function prepareStatements(database: DatabaseSync): Statements {
  return {
    insert: database.prepare(
      'INSERT INTO plants (id, name, tag, idempotency_key) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
    ),
    selectKeyed: database.prepare(
      'SELECT id, name, tag FROM plants WHERE id = ? AND idempotency_key = ?',
    ),
    select: database.prepare(
      'SELECT id, name, tag FROM plants WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?',
    ),
  };
}

export function insertPlant({ insert, selectKeyed }: Statements, plant: KeyedPlant): Insertion {
  const { id, name, tag = null, keyDigest } = plant;
  const key = keyDigest === undefined ? null : Buffer.from(keyDigest, 'hex');
  if (Number(insert.run(id, name, tag, key).changes) === 1) return 'created';
  const row = key && (selectKeyed.get(id, key) as unknown as Row | undefined);
  return repetitionOutcome(row ? { ...toPlant(row), keyDigest } : undefined, plant);
}

export function readPlants({ select }: Statements, { from, to, limit }: PlantRange): Plant[] {
  const plants: Plant[] = [];
  let text = 0;
  for (const row of select.iterate(from, to, limit)) {
    const plant = toPlant(row as unknown as Row);
    plants.push(plant);
    text += textLength(plant);
    if (text > PAGE_TEXT_LIMIT) break;
  }
  return plants;
}

function toPlant({ id, name, tag }: Row): Plant {
  return tag === null ? { id, name } : { id, name, tag };
}
