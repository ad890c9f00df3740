/**
 * Builds `dist` without checking types, unless it is newer than everything that it is made from:
 * `npm start`, `npm run plant-store` and `npm test` begin at once then.
 */
import { execSync } from 'node:child_process';
import { globSync, statSync } from 'node:fs';

const SOURCES = ['src/**', 'tools/bundle.mjs', 'package.json', 'tsconfig*.json', 'nest-cli.json'];
const timeOf = (file) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

const builtAt = timeOf('dist/program/plant-store.js');
if (globSync(SOURCES).some((file) => timeOf(file) > builtAt)) {
  execSync('nest build --path tsconfig.start.json && node tools/bundle.mjs', {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}
