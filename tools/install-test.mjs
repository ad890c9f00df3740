/**
 * Installs what only the tests and linters need: the optional dependencies of the workspace `test`,
 * which `npm ci` leaves out (`.npmrc`). Scripts that need them call this first; it takes no time
 * when they are there.
 */
import { execSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';

const STAMP = 'node_modules/.test-installed';

/** Changes when other packages are locked, and when npm adds or removes some. */
function computeStamp() {
  const hash = createHash('sha256');
  for (const lock of ['package-lock.json', 'node_modules/.package-lock.json']) {
    if (existsSync(lock)) hash.update(readFileSync(lock));
  }
  return hash.digest('hex');
}

if (!existsSync(STAMP) || readFileSync(STAMP, 'utf8') !== computeStamp()) {
  process.stderr.write('Installing what the tests and linters need.\n');
  execSync('npm install --include=optional --no-save --no-audit --no-fund', { stdio: 'inherit' });
  writeFileSync(STAMP, computeStamp());
}
