/** The version of the schema that this program makes and uses, in every store. */
export const SCHEMA_VERSION = 3;

/** @throws Error when another program has made the schema of a database */
export function assertSchemaVersion(version: number): void {
  if (version === SCHEMA_VERSION) return;
  throw new Error(
    `the database has schema version ${version}, but this program uses version ${SCHEMA_VERSION}: run the program that has made it`,
  );
}
