import { execFile } from 'node:child_process';
import { delimiter, join } from 'node:path';

export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end, and gives back whatever that is. */
export function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Run> {
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      const code = typeof error?.code === 'number' ? error.code : error ? 1 : 0;
      resolve({ code, stdout, stderr });
    });
  });
}

/**
 * Runs lines that a person would paste into a shell. A machine without curl gets the little that the
 * documentation uses of it.
 */
export function shell(
  lines: string,
  { env = process.env, ...options }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Run> {
  const path = [process.env.PATH, join(__dirname, 'bin')].join(delimiter);
  return run('sh', ['-c', lines], { ...options, env: { ...env, PATH: path } });
}
