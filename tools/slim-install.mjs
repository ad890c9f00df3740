/**
 * Removes what nothing here uses from the packages that `npm ci` installs, 109 of 471 MB: the C++ headers
 * that the npm package `node` brings beside its binary, and the source maps of packages.
 */
import { readdirSync, rmSync } from 'node:fs';

const UNUSED = /\.map$|[/\\]node-[^/\\]+[/\\]include$/;

for (const path of readdirSync('node_modules', { recursive: true })) {
  if (UNUSED.test(path)) rmSync(`node_modules/${path}`, { recursive: true, force: true });
}
