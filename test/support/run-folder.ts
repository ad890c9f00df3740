import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Signals that end a run early, and the exit codes that a shell gives them. */
const EARLY_ENDS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/**
 * Gives a run a temporary folder of its own, before its first test (Jest's `globalSetup`). All that
 * the run puts into the temporary folder of the system goes there. At the end of the process, be it
 * by a signal, the folder is removed and PostgreSQL servers that have their data in it end.
 */
export default function makeRunFolder(): void {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-run-'));
  // PostgreSQL, which does not run as root, has its data in it.
  chmodSync(folder, 0o755);
  process.env.TMPDIR = folder;
  process.once('exit', () => {
    cleanUp(folder);
  });
  for (const [signal, code] of Object.entries(EARLY_ENDS)) {
    process.once(signal, () => process.exit(code));
  }
}

function cleanUp(folder: string): void {
  for (const file of globSync(join(folder, '*/data/postmaster.pid'))) {
    try {
      process.kill(parseInt(readFileSync(file, 'utf8'), 10), 'SIGQUIT');
    } catch {
      // It has ended by itself.
    }
  }
  // A server that is ending may still write.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}
