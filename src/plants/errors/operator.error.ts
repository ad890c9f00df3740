/** An error that the operator can correct. The message is one sentence that states how, or the cause. */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}

/**
 * An option of the module cannot be used. The message is a whole sentence that begins with the name of the option,
 * such as `auth.audience must be a non-empty string.`
 */
export class OptionError extends OperatorError {
  override readonly name: string = 'OptionError';

  /**
   * @param option the name in the message, such as `sqlite` or `auth.issuer`
   * @param required another option that the message names
   */
  constructor(
    readonly option: string,
    message: string,
    options?: ErrorOptions,
    readonly required?: string,
  ) {
    super(message, options);
  }
}
