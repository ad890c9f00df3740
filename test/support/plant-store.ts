import { join } from 'node:path';
import { spawn as spawnOnTerminal } from '@lydell/node-pty';
import type { Run } from './run';
import { programEnvironment } from './run-folder';
import { TestProcess } from './test-process';

/** The built program. */
export const PROGRAM = join(__dirname, '../../dist/cli/plant-store.js');

/** A wrapper under which files are closed to root, too, unless their modes open them. */
export const WITHOUT_ROOT_ACCESS =
  process.getuid?.() === 0 ? ['setpriv', '--bounding-set', '-dac_override,-dac_read_search'] : [];

interface ProgramOptions {
  /** The working directory. */
  readonly cwd?: string;
  /** A program that runs the command, with its arguments. */
  readonly wrapper?: readonly string[];
  /** The built program, unless it is another build. */
  readonly program?: string;
}

/** The built `plant-store` as a process. */
export class ProgramProcess extends TestProcess {
  constructor(
    args: readonly string[],
    environment: NodeJS.ProcessEnv = {},
    { cwd, wrapper = [], program = PROGRAM }: ProgramOptions = {},
  ) {
    const env = { ...programEnvironment(), ...environment };
    super([...wrapper, process.execPath, program, ...args], { cwd, env });
  }
}

/** A command of `plant-store` that ends by itself. */
export class CommandProcess extends ProgramProcess {
  readonly ended: Promise<Run & { readonly signal: NodeJS.Signals | null }> = this.closed.then(
    ({ code, signal }) => {
      const { stdout, stderr } = this;
      return { code: code ?? NaN, signal, stdout, stderr };
    },
  );
}

/** Runs a command to its end. */
export async function plantStore(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  { input = '', ...options }: ProgramOptions & { input?: string | Buffer } = {},
): Promise<Run> {
  const command = new CommandProcess(args, environment, options);
  command.child.stdin?.end(input);
  const { code, stdout, stderr } = await command.ended;
  return { code, stdout, stderr: withoutProgress(stderr) };
}

/**
 * Without the lines of a busy machine: how far a command is, every ten seconds, and that it tries again
 * because a store did not answer in time.
 */
export function withoutProgress(stderr: string): string {
  return stderr.replaceAll(/^(?:[\d,]+ (?:plants|MiB), |Retrying for up to a minute: ).*\n/gm, '');
}

/** Runs a command to its end on a terminal. What it prints comes as one text. */
export async function plantStoreOnTerminal(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<{ code: number; output: string }> {
  const terminal = spawnOnTerminal(process.execPath, [PROGRAM, ...args], {
    cols: 200,
    env: { ...programEnvironment(), ...environment },
  });
  let output = '';
  terminal.onData((text) => (output += text));
  return new Promise((resolve) => {
    terminal.onExit(({ exitCode }) => {
      resolve({ code: exitCode, output });
    });
  });
}
