/**
 * Runs scripts of package.json whose result is missing or older than its sources:
 * `node tools/if-stale.mjs build test:install`.
 */
import { execSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import process from 'node:process';

/** The result of each script, and its sources: files and directories. */
const SCRIPTS = {
  build: {
    result: 'dist/cli/plant-store.js',
    sources: ['src', 'package.json', 'tsconfig.json', 'tsconfig.build.json', 'nest-cli.json'],
  },
  'test:install': {
    result: 'test/node_modules/.package-lock.json',
    sources: ['test/package-lock.json'],
    notice: 'Installing the test tools, once: PostgreSQL, Chromium, an OpenID provider … (340 MB)',
  },
};

// npm runs scripts with the Node.js in node_modules, unless npm did not install that optional package.
if (Number.parseInt(process.versions.node, 10) < 24) {
  stop(
    `Node.js ${process.version} is too old. Install the version of the project: npm ci --include=optional`,
  );
}
process.argv.slice(2).forEach(runIfStale);

function runIfStale(name) {
  const { result, sources, notice } = SCRIPTS[name];
  const builtAt = timeOf(result);
  if (sources.flatMap(filesIn).every((file) => timeOf(file) <= builtAt)) return;
  if (name === 'test:install' && process.env.npm_config_ignore_scripts === 'true') {
    stop('The tests need install scripts: npm ci --prefix test --ignore-scripts=false');
  }
  if (notice) process.stderr.write(`${notice}\n`);
  // Prints to standard error, because standard output belongs to the program that runs next.
  execSync(`npm run --silent ${name}`, { stdio: ['ignore', 2, 2] });
}

function stop(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

function timeOf(file) {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function filesIn(path) {
  if (!statSync(path).isDirectory()) return [path];
  // A directory is newer than the result if one of its files was deleted.
  return [path, ...readdirSync(path, { recursive: true }).map((name) => `${path}/${name}`)];
}
