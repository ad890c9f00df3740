import { existsSync, statSync } from 'node:fs';
import { dirname, resolve as resolvePath } from 'node:path';

/** Explains in a sentence why a path that SQLite would accept cannot be used for a store; undefined if it can. */
export function findPathError(path: string): string | undefined {
  if (path === '') return 'sqlite must name a file, such as data/plants.db.';
  if (path.startsWith(':memory:') || /^file:.*[?&]mode=memory/s.test(path)) {
    return 'sqlite must name a file: a database in memory loses all plants when the service stops.';
  }
  // One letter is a drive of Windows.
  if (/^[a-z][a-z\d+.-]+:/i.test(path)) {
    return 'sqlite must be the path of a file, such as data/plants.db, without a scheme before it, and not the URL of a PostgreSQL database. Write ./ before a file name with a colon.';
  }
  // In other programs, the part after two slashes is a host, or a relative path.
  if (path.startsWith('//')) {
    const name = path.replace(/^\/+/, '');
    return `sqlite must not begin with two slashes: write ${name} for a path in the working directory, or /${name} for an absolute path.`;
  }
  if (/^(?:~$|~[^/]*\/|\$)/.test(path)) {
    return 'sqlite must not begin with ~ or $, which only a shell replaces: write the whole path, or ./ before a file name.';
  }
  if (/(?:^|[/\\])\.{0,2}$/.test(path)) {
    return 'sqlite must name a file, not a directory: write data/plants.db for a file in the directory data.';
  }
  let folder = dirname(resolvePath(path));
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== false) return undefined;
  return `sqlite must not name a file below ${folder}, which is not a directory.`;
}
