/** The program was called with invalid arguments. The message says what is valid. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
