import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';

/**
 * A wrapper that runs the service under strace.
 *
 * @throws Error when strace is missing, so that nothing passes for want of it
 */
export function strace(...options: string[]): string[] {
  if (spawnSync('strace', ['-V']).error) {
    throw new Error('this test looks at system calls with strace: apt-get install strace');
  }
  return ['strace', '-f', '-qq', ...options];
}

/** The lines of what strace wrote with `-ff`: a file for each thread, so that each line is a whole call. */
export function readTraces(trace: string): string[] {
  const files = globSync(`${trace}.*`);
  return files.flatMap((file) => readFileSync(file, 'latin1').trimEnd().split('\n'));
}

/** A wrapper under which calls of the service fail or are slow, as the option `inject` of strace says. */
export function inject(calls: string, fault: string): string[] {
  const traced = ['--seccomp-bpf', '-e', `trace=${calls}`, '-o', '/dev/null'];
  return strace(...traced, '-e', `inject=${calls}:${fault}`);
}

/** The process id of the one program that strace, running as `pid`, runs. */
export function tracee(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
}
