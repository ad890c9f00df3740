/** An error that the operator can correct. The message is one sentence that says how, or why. */
export class OperatorError extends Error {
  override readonly name: string = 'OperatorError';
}

/** What is wrong with an option of the module. */
export interface OptionFault {
  /** Such as `sqlite` or `auth.issuer`. */
  readonly option: string;
  /** Continues the name of the option, such as `must be a path`. It names no option itself. */
  readonly clause: string;
  /** Another option, whose name ends the clause. */
  readonly other?: string;
}

/**
 * Writes a fault as a sentence without its full stop.
 *
 * @param nameOf what a reader calls an option; by default, as a host writes it
 */
export function describeFault(
  { option, clause, other }: OptionFault,
  nameOf = (name: string): string => `"${name}"`,
): string {
  const end = other === undefined ? '' : ` ${nameOf(other)}`;
  return `${nameOf(option)} ${clause}${end}`;
}

/** An option of the module cannot be used. The message is for a host; {@link describeFault} makes others. */
export class OptionError extends OperatorError implements OptionFault {
  override readonly name: string = 'OptionError';

  constructor(
    readonly option: string,
    readonly clause: string,
    options?: ErrorOptions,
  ) {
    super(`PlantsModule: ${describeFault({ option, clause })}.`, options);
  }
}

/** The program was called with invalid arguments. The message says what is valid. */
export class UsageError extends OperatorError {
  override readonly name = 'UsageError';
}
