/** One step of the schema of the table `plants`, for each kind of store. */
export interface Migration {
  readonly sqlite: string;
  /** Changes nothing where its columns exist: an operator may have prepared the table. */
  readonly postgres: string;
}

/**
 * The steps from an empty database to the present schema, in order. The version of a schema is the number
 * of steps that made it. A step that was released never changes: the next version appends one.
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

/** The statements of a kind of store that lead from a version to the present one. */
export function migrationsAfter(version: number, store: keyof Migration): string[] {
  return MIGRATIONS.slice(version).map((migration) => migration[store]);
}

/** @throws Error when a newer service has made the schema of a database */
export function assertKnownVersion(version: number): void {
  if (version <= MIGRATIONS.length) return;
  throw new Error(
    `the database has schema version ${version}, and this service knows versions up to ${MIGRATIONS.length}: run the newer service that made it`,
  );
}

/** What a start will do with a schema version, for an operator. */
export function describeVersion(version: number): string {
  const isCurrent = version === MIGRATIONS.length;
  return `schema version ${version}${isCurrent ? '' : `, which the service will upgrade to ${MIGRATIONS.length}`}`;
}
