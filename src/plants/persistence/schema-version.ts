export function describeUpgrade(from: number, to: number): string {
  return `The schema of the store is being brought from version ${from} to ${to}. An earlier version of the program cannot use the store afterwards.`;
}

/** @throws Error when a newer program has made the schema of a database */
export function assertSupportedSchema(version: number, newest: number): void {
  if (version <= newest) return;
  throw new Error(
    `the database has schema version ${version}, but this program supports only up to ${newest}: run a newer version of the program`,
  );
}
