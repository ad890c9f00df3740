import { OperatorError } from '../../errors';

/** The store cannot be used, as found at the start. The message is one sentence for the operator. */
export class StoreOpenError extends OperatorError {
  override readonly name = 'StoreOpenError';
  override readonly variable = 'DATABASE_URL';

  constructor(what: string, cause: unknown) {
    super(`${what}: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause });
  }
}

/** @throws Error when a newer program has made the schema of a database */
export function assertSupportedSchema(version: number, newest: number): void {
  if (version <= newest) return;
  throw new Error(
    `the database has schema version ${version}, but this program supports only up to ${newest}: run a newer version of the program`,
  );
}
