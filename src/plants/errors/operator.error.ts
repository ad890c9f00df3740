/** An error that the operator can correct. The message is one sentence that states how, or the cause. */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}

/** An invalid option of the module. */
export interface InvalidOption {
  /** Such as `sqlite` or `auth.issuer`. */
  readonly option: string;
  /** The problem, worded to follow the name of the option, such as `must be a path`. It names no option. */
  readonly problem: string;
  /** Another option, whose name ends the sentence. */
  readonly other?: string;
}

/**
 * Formats an invalid option as a sentence without its full stop.
 *
 * @param nameOf formats the name of an option for the reader; by default, in quotation marks
 */
export function describeInvalidOption(
  { option, problem, other }: InvalidOption,
  nameOf = (name: string): string => `"${name}"`,
): string {
  const end = other === undefined ? '' : ` ${nameOf(other)}`;
  return `${nameOf(option)} ${problem}${end}`;
}

/**
 * An option of the module cannot be used. The message is for a host. {@link describeInvalidOption} formats
 * it for other readers.
 */
export class OptionError extends OperatorError implements InvalidOption {
  override readonly name: string = 'OptionError';

  constructor(
    readonly option: string,
    readonly problem: string,
    options?: ErrorOptions,
  ) {
    super(`PlantsModule: ${describeInvalidOption({ option, problem })}.`, options);
  }
}

/** The command line has invalid arguments. The message states what is valid. */
export class UsageError extends OperatorError {
  override readonly name = 'UsageError';
}
