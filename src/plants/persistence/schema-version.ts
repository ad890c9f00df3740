/** @throws Error when a newer program has made the schema of a database */
export function assertSupportedSchema(version: number, newest: number): void {
  if (version <= newest) return;
  throw new Error(
    `the database has schema version ${version}, but this program supports only up to ${newest}: run a newer version of the program`,
  );
}
