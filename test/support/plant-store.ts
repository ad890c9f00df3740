import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { spawn as spawnOnTerminal } from '@lydell/node-pty';
import { programEnvironment, recordProcess } from './run-folder';
import type { Run } from './run';

const PROGRAM = join(__dirname, '../../dist/program/plant-store.js');

/** The built `plant-store` as a process, with pipes. */
export class ProgramProcess {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  /** The exit code and signal, once it has ended and all its output has been read. */
  protected readonly closed: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;

  /** @param options with `wrapper`, a program that runs the command, and its arguments */
  constructor(
    args: readonly string[],
    environment: NodeJS.ProcessEnv = {},
    options: { cwd?: string; wrapper?: readonly string[] } = {},
  ) {
    const { cwd, wrapper = [] } = options;
    const [program = '', ...rest] = [...wrapper, process.execPath, PROGRAM, ...args];
    this.child = spawn(program, rest, { cwd, env: { ...programEnvironment(), ...environment } });
    recordProcess(this.child);
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.child.stdin?.on('error', () => undefined);
    this.closed = once(this.child, 'close').then(([code, signal]) => ({
      code: code as number | null,
      signal: signal as NodeJS.Signals | null,
    }));
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

export async function plantStore(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
  { input = '', ...options }: { cwd?: string; input?: string | Buffer } = {},
): Promise<Run> {
  const command = new CommandProcess(args, environment, options);
  command.child.stdin?.end(input);
  const { code, stdout, stderr } = await command.ended;
  return { code, stdout, stderr };
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
