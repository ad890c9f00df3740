import { DatabaseSync } from 'node:sqlite';
import { extendedCodeOf, isRowRejection } from './sqlite.errors';

/** https://sqlite.org/rescode.html#constraint_primarykey */
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;

/** Runs statements that SQLite rejects, and returns the error of `node:sqlite`. */
function catchError(statements: string): unknown {
  const database = new DatabaseSync(':memory:');
  try {
    database.exec(statements);
    throw new Error('SQLite did not reject the statements.');
  } catch (error) {
    return error;
  } finally {
    database.close();
  }
}

describe('the errors of node:sqlite', () => {
  it('extendedCodeOf returns the extended result code of SQLite', () => {
    const error = catchError(
      'CREATE TABLE plants (id INTEGER PRIMARY KEY); INSERT INTO plants VALUES (1), (1)',
    );

    expect(extendedCodeOf(error)).toBe(SQLITE_CONSTRAINT_PRIMARYKEY);
    expect(isRowRejection(error)).toBe(true);
  });

  it('isRowRejection returns false for an error of the statement', () => {
    expect(isRowRejection(catchError('SELECT missing'))).toBe(false);
  });

  it('extendedCodeOf returns undefined for another error', () => {
    expect(extendedCodeOf(new Error('not of SQLite'))).toBeUndefined();
  });
});
