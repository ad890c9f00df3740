import { OperatorError } from '../plants/errors/operator.error';

/** The command line has invalid arguments. The message states what is valid. */
export class UsageError extends OperatorError {
  override readonly name = 'UsageError';
}
