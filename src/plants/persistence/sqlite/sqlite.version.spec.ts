import { DatabaseSync } from 'node:sqlite';
import { assertSafeSqlite } from './sqlite.version';

describe('a connection to SQLite', () => {
  let database: DatabaseSync;
  beforeEach(() => {
    database = new DatabaseSync(':memory:');
  });
  afterEach(() => {
    database.close();
  });

  const pretend = (version: string): void => {
    database.function('sqlite_version', () => version);
  };

  it.each(['3.44.6', '3.50.7', '3.51.3', '3.60.0', '4.0.0'])('may be of version %s', (version) => {
    pretend(version);

    expect(() => {
      assertSafeSqlite(database);
    }).not.toThrow();
  });

  it.each(['3.44.5', '3.45.0', '3.50.6', '3.51.2'])('must not be of version %s', (version) => {
    pretend(version);

    expect(() => {
      assertSafeSqlite(database);
    }).toThrow(`SQLite ${version} may lose stored plants`);
  });
});
