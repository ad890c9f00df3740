/** An error that the operator can correct. The message is one sentence that says how, or why. */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}

/** An option of the module cannot be used. The message names it. */
export class OptionError extends OperatorError {
  /**
   * @param sentence the message without the name
   * @param option such as `sqlite`
   */
  constructor(
    readonly sentence: string,
    readonly option: string,
    options?: ErrorOptions,
  ) {
    super(sentence.replace(/\.$/, ` (option "${option}").`), options);
  }
}

/** The program was called with invalid arguments. The message says what is valid. */
export class UsageError extends OperatorError {
  override readonly name = 'UsageError';
}
