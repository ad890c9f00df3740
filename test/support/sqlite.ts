import { DatabaseSync } from 'node:sqlite';
import type { Plant } from '../../src/plants';

/** All plants of a SQLite file, in id order, read by a connection of its own. */
export function readPlants(file: string): Plant[] {
  const database = new DatabaseSync(file, { readOnly: true, readBigInts: true });
  const rows = database.prepare('SELECT id, name, tag FROM plants ORDER BY id').all();
  database.close();
  return rows.map(({ id, name, tag }) => ({ id, name, ...(tag === null ? {} : { tag }) }) as Plant);
}

/** Runs a statement on a SQLite file, on a connection of its own. */
export function execute(file: string, statement: string): void {
  const database = new DatabaseSync(file);
  database.exec(statement);
  database.close();
}

/** Takes the lock of who writes to a SQLite file, and holds it until the connection is closed. */
export function lockDatabase(file: string): DatabaseSync {
  const database = new DatabaseSync(file);
  database.exec('BEGIN IMMEDIATE');
  return database;
}

/** What SQLite's integrity check says of a file: "ok" when it is sound. */
export function integrity(file: string): unknown {
  const database = new DatabaseSync(file, { readOnly: true });
  const result = database.prepare('PRAGMA integrity_check').get();
  database.close();
  return result?.integrity_check;
}
