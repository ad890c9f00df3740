import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { endProcessWithRun } from './run-folder';

/** The exit code or the signal with which a process ended. */
interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process whose output is recorded. It ends with the test run at the latest. */
export class TestProcess {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';
  /** Resolves when the process has ended and all its output has been read. */
  protected readonly closed: Promise<End>;

  constructor(
    [program = '', ...args]: readonly string[],
    options: { cwd?: string | undefined; env: NodeJS.ProcessEnv },
  ) {
    const child = spawn(program, args, options);
    endProcessWithRun(child);
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    child.stdin.on('error', () => undefined);
    // A failed test may leave the process running. It must not keep Jest from ending.
    for (const handle of [child, ...child.stdio]) (handle as Socket | null)?.unref();
    this.child = child;
    this.closed = new Promise((resolve) => {
      child.once('close', (code, signal) => {
        resolve({ code, signal });
      });
    });
  }

  /**
   * Waits until the output matches. Returns the first match.
   *
   * @throws Error with all output, if the process ends before
   */
  async waitForOutput(
    pattern: RegExp,
    output: 'stdout' | 'stderr' = 'stdout',
  ): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this[output]);
      if (match) return match;
      const more = once(this.child[output] ?? this.child, 'data');
      const failure = () => Promise.reject(new Error(this.stdout + this.stderr));
      await Promise.race([more, this.closed.then(failure)]);
    }
  }

  /** Sends a signal and waits until the process has ended. */
  end(signal: NodeJS.Signals = 'SIGTERM'): Promise<End> {
    this.child.kill(signal);
    return this.closed;
  }
}
