/**
 * Describes why a path cannot name the file of a store, although SQLite itself gives it a meaning.
 *
 * @returns undefined when it can
 */
export function describeUnusablePath(path: string): string | undefined {
  if (path === '') return 'needs the path of a file';
  if (path.startsWith(':memory:') || /^file:.*[?&]mode=memory/s.test(path)) {
    return 'must name a file: a database in memory would lose every plant at the end';
  }
  if (path.startsWith('file:')) return 'must name a file by its path, not by a URI';
  return undefined;
}
