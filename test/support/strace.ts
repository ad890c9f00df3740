import { globSync, readFileSync } from 'node:fs';

/** Returns a wrapper that runs a process under strace. */
export function createStraceWrapper(...options: string[]): string[] {
  return ['strace', '-f', '-qq', ...options];
}

/** Returns the lines that strace wrote with `-ff`: one file per thread, so that each line is a complete call. */
export function readTraces(trace: string): string[] {
  const files = globSync(`${trace}.*`);
  return files.flatMap((file) => readFileSync(file, 'latin1').trimEnd().split('\n'));
}

/**
 * Returns a wrapper under which system calls, or those on one path, fail or are slow: `fault` is for the option
 * `inject` of strace.
 */
export function createFaultWrapper(calls: string, fault: string, path?: string): string[] {
  const traced = ['--seccomp-bpf', '-e', `trace=${calls}`, '-o', '/dev/null'];
  if (path !== undefined) traced.push('-P', path);
  return createStraceWrapper(...traced, '-e', `inject=${calls}:${fault}`);
}

/** Returns the process id of the program that strace runs. `pid` is the process id of strace. */
export function findTracee(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
}
