import { OptionError } from '../errors/operator.error';

/** The store cannot be used, as found at the start. The message is one sentence for the operator. */
export class StoreOpenError extends OptionError {
  override readonly name = 'StoreOpenError';

  constructor(option: 'sqlite' | 'postgres', what: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`${what}: ${reason}.`, option, { cause });
  }
}
