import { OptionError } from '../errors/operator.error';

/** The store cannot be used, as found at startup. */
export class StoreOpenError extends OptionError {
  override readonly name = 'StoreOpenError';
}
