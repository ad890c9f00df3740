import { DatabaseSync } from 'node:sqlite';

/**
 * Runs a long task in a separate process. SQLite performs each task in one call, which can be interrupted only
 * by killing the process. Arguments: `copy SOURCE TARGET` or `check FILE`.
 */
const [task, file = '', target] = process.argv.slice(2);
try {
  const database = new DatabaseSync(file, { readOnly: true, timeout: 5000 });
  if (task === 'copy') {
    // This is one read transaction: it neither blocks writers nor is blocked by them.
    database.prepare('VACUUM INTO ?').run(target ?? '');
  } else {
    const { integrity_check: result } = database.prepare('PRAGMA integrity_check').get() ?? {};
    if (result !== 'ok') throw new Error(`integrity check: ${String(result)}`);
  }
  database.close();
} catch (error) {
  process.stderr.write(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
