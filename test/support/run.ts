import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface RunResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program until it ends. Resolves for every exit code. */
export function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<RunResult> {
  return new Promise((resolve) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      // A process that a signal has ended has no exit code.
      const failure = typeof error?.code === 'number' ? error.code : 1;
      resolve({ code: error ? failure : 0, stdout, stderr });
    });
  });
}

/** Runs lines in a shell, as a user would paste them. */
export function shell(
  lines: string,
  { env, ...options }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<RunResult> {
  return run('sh', ['-c', lines], { ...options, env: { PATH: process.env.PATH, ...env } });
}

/**
 * Describes tests that need what only Linux has: its devices, limits and `/proc`. On other systems, skips them and
 * says so in the name.
 */
export function describeOnLinux(tests: () => void): void {
  if (process.platform === 'linux') describe('on Linux', tests);
  else describe.skip('on Linux, which this machine does not run', tests);
}

/**
 * Describes tests that only root can run, because it gives files to other users. Other users skip them, and the name
 * says so.
 */
export function describeAsRoot(tests: () => void): void {
  if (process.getuid?.() === 0) describe('as root', tests);
  else describe.skip('as root, which this user is not', tests);
}

/**
 * Describes tests that need a program that npm cannot install. If it is missing, skips them and says so in the name.
 * In CI, they run in any case, so that they fail instead.
 */
export function describeWith(program: string, tests: () => void): void {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const isFound = folders.some((folder) => existsSync(join(folder, program)));
  if (isFound || process.env.CI) describe(`with ${program}`, tests);
  else describe.skip(`without ${program}, which this machine lacks`, tests);
}
