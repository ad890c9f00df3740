import { OperatorError } from '../../errors';

/** The store cannot be used, as found at the start. The message is one sentence for the operator. */
export class StoreOpenError extends OperatorError {
  override readonly name = 'StoreOpenError';
  override readonly variable = 'DATABASE_URL';

  constructor(what: string, cause: unknown) {
    super(`${what}: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause });
  }
}
