/**
 * Removes what nothing here uses from the packages that `npm ci` installs, some 80 MB: the C++ headers
 * that the npm package `node` brings beside its binary, and the source maps of packages.
 */
import { globSync, rmSync } from 'node:fs';

const UNUSED = ['node_modules/node/node_modules/node-*/include', 'node_modules/**/*.map'];

for (const path of globSync(UNUSED)) rmSync(path, { recursive: true });
