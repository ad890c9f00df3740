import { DatabaseSync } from 'node:sqlite';
import { assertSafeSqlite } from './sqlite.version';

const assertVersion = (version: string) => () => {
  const database = new DatabaseSync(':memory:');
  database.function('sqlite_version', () => version);
  assertSafeSqlite(database);
};

describe('assertSafeSqlite', () => {
  it.each(['3.51.3', '3.51.10', '3.60.0', '3.100.0', '4.0.0'])('accepts version %s', (version) => {
    expect(assertVersion(version)).not.toThrow();
  });

  it.each(['3.6.0', '3.50.9', '3.51.2'])('rejects version %s', (version) => {
    expect(assertVersion(version)).toThrow(`SQLite ${version} may lose stored plants`);
  });
});
