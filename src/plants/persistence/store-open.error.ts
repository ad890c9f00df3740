import { OptionError } from '../errors/operator.error';

/** The store cannot be used, as found at the start. */
export class StoreOpenError extends OptionError {
  override readonly name = 'StoreOpenError';
}
