/** One command of the `plant-store` program. */
export interface Command {
  /** What calls it, for example `token create`. */
  readonly words: readonly string[];
  /** How it is called. */
  readonly synopsis: string;
  /** What it does, in half a sentence. */
  readonly summary: string;
  /**
   * @param args what follows the words
   * @throws UsageError when it cannot be called so
   */
  run(args: string[], environment: NodeJS.ProcessEnv): void | Promise<void>;
}

/** The program is called in a way that it does not understand; the message says how it is called. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
