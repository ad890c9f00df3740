/** One command of the `plant-store` program. */
export interface Command {
  /** The words that select it, for example `token` and `create`. */
  readonly words: readonly string[];
  /** Its syntax, without the name of the program. */
  readonly synopsis: string;
  /** What it does, in one phrase. */
  readonly summary: string;
  /**
   * Runs the command.
   *
   * @param args the arguments after the words
   * @throws UsageError when they are invalid
   */
  run(args: string[], environment: NodeJS.ProcessEnv): void | Promise<void>;
}

/** The program was called with invalid arguments. The message says what is valid. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
