import { join } from 'node:path';
import { spawn as spawnOnTerminal } from '@lydell/node-pty';
import type { Run } from './run';
import { programEnvironment } from './run-folder';
import { TestProcess } from './test-process';

/** The built program. */
export const PROGRAM = join(__dirname, '../../dist/cli/plant-store.js');

/** The built `plant-store` as a process. */
export class ProgramProcess extends TestProcess {
  /** @param options with `wrapper`, a program that runs the command, and its arguments */
  constructor(
    args: readonly string[],
    environment: NodeJS.ProcessEnv = {},
    { cwd, wrapper = [] }: { cwd?: string; wrapper?: readonly string[] } = {},
  ) {
    const env = { ...programEnvironment(), ...environment };
    super([...wrapper, process.execPath, PROGRAM, ...args], { cwd, env });
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
  { input = '', ...options }: { cwd?: string; wrapper?: string[]; input?: string | Buffer } = {},
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
  return stderr.replaceAll(
    /^(?:[\d,]+ (?:plants|MiB), |Trying again for up to a minute: ).*\n/gm,
    '',
  );
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
