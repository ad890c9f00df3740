import { join } from 'node:path';
import type { RunResult } from './run';
import { programEnvironment } from './run-folder';
import { TestProcess } from './test-process';

/** The path of the built CLI. */
export const CLI_PATH = join(__dirname, '../../dist/cli/plant-store.js');

/** A wrapper under which file modes apply to root, too. */
export const WITHOUT_ROOT_ACCESS =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set', '-dac_override,-dac_read_search'] : [];

interface ProgramOptions {
  /** The working directory. */
  readonly cwd?: string;
  /** A program, with its arguments, that runs the command. */
  readonly wrapper?: readonly string[];
  /** The path of the CLI. {@link CLI_PATH} by default. */
  readonly program?: string;
}

/** A process of the built `plant-store`. */
export class CliProcess extends TestProcess {
  constructor(
    args: readonly string[],
    environment: NodeJS.ProcessEnv = {},
    { cwd, wrapper = [], program = CLI_PATH }: ProgramOptions = {},
  ) {
    const env = { ...programEnvironment(), ...environment };
    super([...wrapper, process.execPath, program, ...args], { cwd, env });
  }
}

/** A process of a `plant-store` command that ends by itself. */
export class CommandProcess extends CliProcess {
  readonly ended: Promise<RunResult & { readonly signal: NodeJS.Signals | null }> =
    this.closed.then(({ code, signal }) => {
      const { stdout, stderr } = this;
      return { code: code ?? NaN, signal, stdout, stderr };
    });
}

/** Runs a command until it ends. */
export async function plantStore(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  { input = '', ...options }: ProgramOptions & { input?: string | Buffer } = {},
): Promise<RunResult> {
  const command = new CommandProcess(args, environment, options);
  command.child.stdin?.end(input);
  const { code, stdout, stderr } = await command.ended;
  return { code, stdout, stderr };
}
