/**
 * Removes the C++ headers that the npm package `node` brings beside its binary: a fifth of what
 * `npm ci` would leave on the disk, and nothing here is compiled against them.
 */
import { globSync, rmSync } from 'node:fs';

for (const headers of globSync('node_modules/node/node_modules/node-*/include')) {
  rmSync(headers, { recursive: true });
}
