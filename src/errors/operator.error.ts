/** An error that the operator can correct. The message is one sentence that says how, or why. */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
  /** The environment variable to correct, if the message does not name it. */
  readonly variable?: string;
}

/** The program was called with invalid arguments. The message says what is valid. */
export class UsageError extends OperatorError {
  override readonly name = 'UsageError';
}

/** What an operator is shown of an error: a sentence, or all of an error of the program. */
export function describeForOperator(error: unknown): unknown {
  if (error instanceof OperatorError) {
    const { message, variable } = error;
    return variable === undefined ? message : message.replace(/\.$/, ` (${variable}).`);
  }
  // An error of the operating system or of SQLite says enough by itself.
  const isOutside = error instanceof Error && ('syscall' in error || 'errcode' in error);
  return isOutside ? error.message : error;
}
