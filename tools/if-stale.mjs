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
    result: 'dist/cli/plant-store.js',
    sources: ['src', 'package.json', 'tsconfig.json', 'tsconfig.build.json', 'nest-cli.json'],
  },
  'test:install': {
    result: 'test/node_modules/.package-lock.json',
    sources: ['test/package-lock.json'],
  },
};

// npm runs scripts on the Node.js from node_modules, unless that package could not install it.
if (Number.parseInt(process.versions.node, 10) < 24) {
  stop(`This needs a newer Node.js than ${process.version}, which is installed by`, 'rebuild node');
}
process.argv.slice(2).forEach(runIfStale);

function runIfStale(name) {
  const { result, sources } = SCRIPTS[name];
  const madeAt = timeOf(result);
  if (sources.flatMap(filesIn).every((file) => timeOf(file) <= madeAt)) return;
  if (name === 'test:install' && process.env.npm_config_ignore_scripts === 'true') {
    stop('The tests need packages with scripts, which are installed by', 'ci --prefix test');
  }
  // The standard output is the program's.
  execSync(`npm run --silent ${name}`, { stdio: ['ignore', 2, 2] });
}

/** Where npm does not run scripts of packages. */
function stop(reason, command) {
  process.stderr.write(`${reason}: npm ${command} --ignore-scripts=false\n`);
  process.exit(1);
}

function timeOf(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true }).map((name) => `${path}/${name}`);
}
