/**
 * Describes why a path cannot name the file of a store, although SQLite would accept it.
 *
 * @returns undefined when it can
 */
export function describeUnusablePath(path: string): string | undefined {
  if (path === '') return 'must name a file, such as data/plants.db';
  if (path.startsWith(':memory:') || /^file:.*[?&]mode=memory/s.test(path)) {
    return 'must name a file: a database in memory loses all plants when the service stops';
  }
  if (path.startsWith('file:')) return 'must name a file by its path, not by a URI';
  return undefined;
}
