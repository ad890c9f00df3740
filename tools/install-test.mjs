/**
 * Installs what only the tests and linters need: the optional dependencies of the workspace `test`,
 * which `npm ci` leaves out (`.npmrc`). Scripts that need them call this first; it takes no time
 * when they are there.
 */
import { execFileSync } from 'node:child_process';
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
  // npm skips an optional package whose engines exclude the Node.js that npm itself runs on, so it
  // runs on the one from node_modules.
  const npm = process.env.npm_execpath;
  if (npm === undefined) throw new Error('Run it by npm: npm run test:install');
  const options = [
    '--workspaces',
    '--include-workspace-root',
    '--include=optional',
    '--no-save',
    '--no-audit',
    '--no-fund',
  ];
  execFileSync(process.execPath, [npm, 'install', ...options], { stdio: 'inherit' });
  writeFileSync(STAMP, computeStamp());
}
