import { DatabaseSync } from 'node:sqlite';

/**
 * SQLite by itself: one process inserts the rows of the benchmark for SECONDS into DATABASE, 64 in a
 * transaction, each synced. Prints the rows a second. No store on SQLite can be faster.
 */
const database = new DatabaseSync(process.env.DATABASE);
database.exec('PRAGMA journal_mode = WAL');
database.exec('PRAGMA synchronous = FULL');
database.exec(
  'CREATE TABLE IF NOT EXISTS plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT)',
);
const insert = database.prepare('INSERT INTO plants VALUES (?, ?, ?)');
const first = Number(database.prepare('SELECT count(*) AS plants FROM plants').get().plants);

let rows = 0;
const began = performance.now();
while (performance.now() - began < Number(process.env.SECONDS) * 1000) {
  database.exec('BEGIN');
  for (const end = rows + 64; rows < end; rows++) insert.run(first + rows, 'Fern', 'shade');
  database.exec('COMMIT');
}
console.log((rows * 1000) / (performance.now() - began));
