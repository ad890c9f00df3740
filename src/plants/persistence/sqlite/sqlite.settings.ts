import { existsSync, statSync } from 'node:fs';
import { dirname, resolve as resolvePath } from 'node:path';

/** Explains why a path that SQLite would accept cannot be used for a store; undefined if it can. */
export function findPathError(path: string): string | undefined {
  if (path === '') return 'must name a file, such as data/plants.db';
  if (path.startsWith(':memory:') || /^file:.*[?&]mode=memory/s.test(path)) {
    return 'must name a file: a database in memory loses all plants when the service stops';
  }
  // One letter is a drive of Windows.
  if (/^[a-z][a-z\d+.-]+:/i.test(path)) {
    return 'must be the path of a file, such as data/plants.db, without a scheme before it, and not the URL of a PostgreSQL database. Write ./ before a file name with a colon';
  }
  let folder = dirname(resolvePath(path));
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== false) return undefined;
  return `must not name a file below ${folder}, which is not a directory`;
}
