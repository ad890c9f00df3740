// Builds dist unless it is newer than everything that it is made from.
const { execSync } = require('node:child_process');
const { globSync, statSync } = require('node:fs');
const { join } = require('node:path');

const root = join(__dirname, '..');
const sources = ['src/**', 'package.json', 'tsconfig.json', 'tsconfig.build.json', 'nest-cli.json'];
const timeOf = (/** @type {string} */ file) =>
  statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs ?? 0;

const builtAt = timeOf('dist/plant-store.js');
if (globSync(sources, { cwd: root }).some((file) => timeOf(file) > builtAt)) {
  execSync('npm run --silent build', { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
}
