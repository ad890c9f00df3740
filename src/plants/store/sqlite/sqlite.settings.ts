/** Explains in a sentence why a path that SQLite would accept cannot be used for a store; undefined if it can. */
export function findPathError(path: string): string | undefined {
  if (path === '') return 'sqlite must name a file, such as data/plants.db.';
  // `:memory:` too: a database in memory would lose all plants. One letter is a drive of Windows.
  if (/^(?![a-z]:)[a-z\d+.-]*:/i.test(path)) {
    return 'sqlite must be the path of a file, such as data/plants.db, without a scheme before it, and not the URL of a PostgreSQL database. Write ./ before a file name with a colon.';
  }
  // In other programs, the part after two slashes is a host, or a relative path.
  if (path.startsWith('//')) {
    const name = path.replace(/^\/+/, '');
    return `sqlite must not begin with two slashes: write ${name} for a path in the working directory, or /${name} for an absolute path.`;
  }
  // A home directory, `~`, `~/` or `~user/`, a quotation mark, or a variable.
  if (/^(?:~$|~[^/]*\/|["'`$])/.test(path)) {
    return 'sqlite must not begin with ~, $ or a quotation mark, which only a shell replaces: write the whole path, or ./ before a file name.';
  }
  // The last part is empty, `.` or `..`.
  if (/(?:^|[/\\])\.{0,2}$/.test(path)) {
    return 'sqlite must name a file, not a directory: write data/plants.db for a file in the directory data.';
  }
  return undefined;
}
