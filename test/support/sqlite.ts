import { DatabaseSync } from 'node:sqlite';
import { type Plant, PLANT_COLUMNS, plantFromRow, type PlantRow } from '../../src/plants/plant';
import { HANG_MS } from './until';

/** A connection waits for locks: a command that opens a file holds it alone for a moment. */
const WAITING = { timeout: HANG_MS };

/** The rows that a query of a SQLite file gives, on a connection of its own. */
export function query(file: string, statement: string): Record<string, unknown>[] {
  const database = new DatabaseSync(file, { ...WAITING, readOnly: true });
  const rows = database.prepare(statement).all();
  database.close();
  return rows.map((row) => ({ ...row }));
}

/** All plants of a SQLite file, in id order. */
export function readPlants(file: string): Plant[] {
  const options = { ...WAITING, readOnly: true, readBigInts: true, returnArrays: true };
  const database = new DatabaseSync(file, options);
  const rows = database.prepare(`SELECT ${PLANT_COLUMNS.join(', ')} FROM plants ORDER BY id`).all();
  database.close();
  return rows.map((row) => plantFromRow(row as unknown as PlantRow));
}

/** Runs a statement on a SQLite file, on a connection of its own. */
export function execute(file: string, statement: string): void {
  const database = new DatabaseSync(file, WAITING);
  database.exec(statement);
  database.close();
}

/** Takes the lock of who writes to a SQLite file, and holds it until the connection is closed. */
export function lockDatabase(file: string): DatabaseSync {
  const database = new DatabaseSync(file, WAITING);
  database.exec('BEGIN IMMEDIATE');
  return database;
}

/** What SQLite's integrity check says of a file: "ok" when it is sound. */
export function integrity(file: string): unknown {
  return query(file, 'PRAGMA integrity_check')[0]?.integrity_check;
}
