import { OperatorError, OptionError } from '../plants/program';

/** The variables that set options of the module. */
const VARIABLE_OF: Partial<Record<string, string>> = {
  sqlite: 'DATABASE_URL',
  postgres: 'DATABASE_URL',
  'auth.tokensFile': 'AUTH_TOKENS_FILE',
};

/** What an operator is shown of an error: a sentence, or all of an error of the program. */
export function describeForOperator(error: unknown): unknown {
  if (error instanceof OptionError) {
    return error.sentence.replace(/\.$/, ` (${VARIABLE_OF[error.option] ?? error.option}).`);
  }
  if (error instanceof OperatorError) return error.message;
  // An error of the operating system or of SQLite says enough by itself.
  const isOutside = error instanceof Error && ('syscall' in error || 'errcode' in error);
  return isOutside ? error.message : error;
}
