// The thread of SQLite loads this file: importing Nest here would take 10 MiB.

/** One step of the schema of the table `plants`, for each kind of store. */
export interface Migration {
  readonly sqlite: string;
  /** Changes nothing if its columns exist: an operator may have prepared the table. */
  readonly postgres: string;
}

/**
 * The steps from an empty database to the current schema, in order. The version of a schema is the number
 * of steps that created it. A released step never changes: the next version appends a step.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    // INTEGER PRIMARY KEY is SQLite's bigint: 64 bits, and the row's own key instead of a second index.
    // STRICT rejects a value of another type, which plain SQLite would convert.
    sqlite:
      'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT, idempotency_key BLOB) STRICT',
    postgres:
      'CREATE TABLE IF NOT EXISTS plants (id bigint PRIMARY KEY, name text NOT NULL, tag text, idempotency_key bytea)',
  },
];

/** Returns the statements that upgrade a kind of store from a version to the current one. */
export function migrationsAfter(version: number, store: keyof Migration): string[] {
  return MIGRATIONS.slice(version).map((migration) => migration[store]);
}

/** @throws Error when a newer version of the service created the schema of a database */
export function assertKnownVersion(version: number): void {
  if (version <= MIGRATIONS.length) return;
  throw new Error(
    `the database has schema version ${version}, and this service knows versions up to ${MIGRATIONS.length}: run the newer version of the service that created it`,
  );
}

/** Describes for an operator what startup does with a schema version. */
export function describeVersion(version: number): string {
  const isCurrent = version === MIGRATIONS.length;
  return `schema version ${version}${isCurrent ? '' : `, which the service will upgrade to ${MIGRATIONS.length}`}`;
}
