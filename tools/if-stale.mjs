/**
 * Runs scripts of package.json whose result is missing, or older than what it is made from:
 * `node tools/if-stale.mjs build test:install`.
 */
import { execSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import process from 'node:process';

/** The result of a script, and what it is made from: files and folders. */
const SCRIPTS = {
  build: {
    result: 'dist/program/plant-store.js',
    sources: [
      'src',
      'tools',
      'package.json',
      'tsconfig.json',
      'tsconfig.build.json',
      'nest-cli.json',
    ],
  },
  'test:install': {
    result: 'test/node_modules/.package-lock.json',
    sources: ['test/package-lock.json'],
  },
};

// npm runs scripts on the Node.js from node_modules, unless packages were not allowed to install it.
if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(
    `This needs a newer Node.js than ${process.version}, which npm installs when scripts of packages are allowed: npm rebuild node --ignore-scripts=false\n`,
  );
  process.exit(1);
}
if (import.meta.main) process.argv.slice(2).forEach(runIfStale);

export function runIfStale(name) {
  const { result, sources } = SCRIPTS[name];
  const madeAt = timeOf(result);
  if (sources.flatMap(filesIn).some((file) => timeOf(file) > madeAt)) {
    // The standard output is the program's.
    execSync(`npm run --silent ${name}`, { stdio: ['ignore', 2, 2] });
  }
}

function timeOf(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true }).map((name) => `${path}/${name}`);
}
