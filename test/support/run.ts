import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
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

/** Runs lines that a person would paste into a shell. */
export function shell(
  lines: string,
  { env, ...options }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Run> {
  return run('sh', ['-c', lines], { ...options, env: { PATH: process.env.PATH, ...env } });
}

export function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((part) => existsSync(join(part, program)));
}

/** Tests that need Linux: its programs, devices and limits. On other systems they are skipped, under a name that says so. */
export function describeOnLinux(tests: () => void): void {
  if (process.platform === 'linux') describe('on Linux', tests);
  else describe.skip('on Linux, which this machine does not run', tests);
}

/** Tests that run a program of the machine. Where it is missing they are skipped, under a name that says so. */
export function describeWith(program: string, tests: () => void): void {
  if (isOnPath(program)) describe(`with ${program}`, tests);
  else describe.skip(`without ${program}, which this machine lacks`, tests);
}
