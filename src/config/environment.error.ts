/** The environment is invalid. The message names all invalid variables, one per line. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}
