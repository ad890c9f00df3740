/** A store that cannot be used, noticed at the start. The message is one sentence for an operator. */
export class StoreOpenError extends Error {
  override readonly name = 'StoreOpenError';

  constructor(what: string, cause: unknown) {
    super(`${what}: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause });
  }
}
