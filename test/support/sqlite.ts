import { DatabaseSync } from 'node:sqlite';
import {
  type Plant,
  PLANT_COLUMNS,
  plantFromRow,
  type PlantRow,
} from '../../src/plants/plant/plant';
import { HANG_MS } from './until';

/** Lets a connection wait for locks, because a command that opens a file locks it exclusively for a moment. */
const WAIT_FOR_LOCKS = { timeout: HANG_MS };

/** Runs a query on a SQLite file, on a new read-only connection. Returns the rows. */
export function query(file: string, statement: string): Record<string, unknown>[] {
  const database = new DatabaseSync(file, { ...WAIT_FOR_LOCKS, readOnly: true });
  const rows = database.prepare(statement).all();
  database.close();
  return rows.map((row) => ({ ...row }));
}

/** Returns all plants of a SQLite file, ordered by id. */
export function readPlants(file: string): Plant[] {
  const options = { ...WAIT_FOR_LOCKS, readOnly: true, readBigInts: true, returnArrays: true };
  const database = new DatabaseSync(file, options);
  const rows = database.prepare(`SELECT ${PLANT_COLUMNS.join(', ')} FROM plants ORDER BY id`).all();
  database.close();
  return rows.map((row) => plantFromRow(row as unknown as PlantRow));
}

/** Runs a statement on a SQLite file, on a new connection. */
export function execute(file: string, statement: string): void {
  const database = new DatabaseSync(file, WAIT_FOR_LOCKS);
  database.exec(statement);
  database.close();
}

/** Takes the write lock of a SQLite file, and holds it until the returned connection is closed. */
export function lockDatabase(file: string): DatabaseSync {
  const database = new DatabaseSync(file, WAIT_FOR_LOCKS);
  database.exec('BEGIN IMMEDIATE');
  return database;
}

/** Returns the result of SQLite's integrity check: "ok" if it finds no errors. */
export function checkIntegrity(file: string): unknown {
  return query(file, 'PRAGMA integrity_check')[0]?.integrity_check;
}
