import { DatabaseSync } from 'node:sqlite';

/**
 * SQLite by itself: one process inserts rows into DATABASE for SECONDS, 64 per transaction, each transaction
 * synced. Prints the rows per second, which no store on SQLite can exceed.
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
