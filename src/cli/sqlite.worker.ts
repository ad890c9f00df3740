/** Runs one statement in a thread of its own, because the calls of SQLite block their thread. */
import { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';

const [file, statement, ...values] = workerData as string[] as [string, string, ...string[]];
const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
parentPort?.postMessage(database.prepare(statement).get(...values));
database.close();
