/** The environment is invalid. The message names all invalid variables, each on a line of its own. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';
}
