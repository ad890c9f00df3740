import { DatabaseSync } from 'node:sqlite';
import { assertKnownVersion, MIGRATIONS, migrationsAfter } from '../migrations';

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number | bigint;
  /** The position in the primary key, from 1, or 0. */
  readonly pk: number | bigint;
}

/** Creates or upgrades the table in the current transaction. Returns the version found. */
export function migrate(database: DatabaseSync): number {
  const version = findVersion(database);
  const statements = migrationsAfter(version, 'sqlite');
  database.exec([...statements, `PRAGMA user_version = ${MIGRATIONS.length}`].join(';'));
  return version;
}

/**
 * Finds the version of the table of a store; 0 if it has none yet.
 * @throws Error when the database has another table of that name, when a newer version of the service created it, or
 *   when the table does not fit its version
 */
export function findVersion(database: DatabaseSync): number {
  const version = readSchemaVersion(database);
  assertKnownVersion(version);
  const table = database
    .prepare("SELECT 1 FROM sqlite_schema WHERE name COLLATE NOCASE = 'plants' AND type = 'table'")
    .get();
  if (version === 0 && table) {
    throw new Error(
      'it has a table plants without a schema version. Another program created it, or `.dump` of sqlite3, which loses the version: copy a store by `plant-store backup` instead',
    );
  }
  if (version > 0 && !table) throw new Error('it has no table plants');
  if (version > 0) assertColumns(database, version);
  return version;
}

/**
 * Checks the columns that the service uses. A tool that rebuilt the table may have changed them: a REAL id, for
 * example, is stored as another number. Further columns are the business of the operator.
 */
function assertColumns(database: DatabaseSync, version: number): void {
  const model = new DatabaseSync(':memory:');
  model.exec(
    MIGRATIONS.slice(0, version)
      .map(({ sqlite }) => sqlite)
      .join(';'),
  );
  const found = readColumns(database);
  for (const column of readColumns(model)) {
    const other = found.find(({ name }) => name === column.name);
    const actual = other ? describeColumn(other) : 'missing';
    const expected = describeColumn(column);
    if (actual !== expected) {
      throw new Error(`the column ${column.name} of plants must be ${expected}, but is ${actual}`);
    }
  }
  model.close();
}

function readColumns(database: DatabaseSync): Column[] {
  return database.prepare('PRAGMA table_info(plants)').all() as unknown as Column[];
}

function describeColumn({ type, notnull, pk }: Column): string {
  const isRequired = Number(notnull) === 1;
  const isKey = Number(pk) > 0;
  return `${type.toUpperCase()}${isRequired ? ' NOT NULL' : ''}${isKey ? ' PRIMARY KEY' : ''}`;
}

/** Reads the version of the schema, which SQLite keeps in the header of the file. It is 0 in a new file. */
export function readSchemaVersion(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version);
}
