import { DatabaseSync } from 'node:sqlite';

/**
 * Long work on a database file, as a process of its own: SQLite does each of it in one call, which
 * nothing but the end of its process interrupts. Arguments: `copy SOURCE TARGET` or `check FILE`.
 */
const [task, file = '', target] = process.argv.slice(2);
try {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  if (task === 'copy') {
    // One read transaction: it is not disturbed by writers, nor are they by it.
    database.prepare('VACUUM INTO ?').run(target ?? '');
  } else {
    const { integrity_check: verdict } = database.prepare('PRAGMA integrity_check').get() ?? {};
    if (verdict !== 'ok') throw new Error(`integrity check: ${String(verdict)}`);
  }
  database.close();
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
