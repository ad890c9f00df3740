import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN } from './application';
import { programEnvironment, recordProcess } from './run-folder';

const PROGRAM = join(__dirname, '../../dist/program/plant-store.js');

/** The built service as a process of its own, as an operator runs it. */
export class ServiceProcess {
  /** Everything it has printed to the standard output. */
  stdout = '';
  /** Everything it has printed to the standard error. */
  stderr = '';
  /** The exit code and signal, once it has ended and all its output has been read. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  private readonly child: ChildProcess;

  /**
   * @param folder the working directory
   * @param wrapper a program, with its arguments, that runs the service
   */
  constructor(folder: string, environment: NodeJS.ProcessEnv = {}, wrapper: string[] = []) {
    const [program, ...rest] = [...wrapper, process.execPath, PROGRAM, 'serve'];
    this.child = spawn(program, rest, {
      cwd: folder,
      env: { ...programEnvironment(), PORT: '0', ...environment },
    });
    recordProcess(this.child);
    this.child.stdout?.on('data', (chunk) => (this.stdout += String(chunk)));
    this.child.stderr?.on('data', (chunk) => (this.stderr += String(chunk)));
    this.ended = once(this.child, 'close').then(([code, signal]) => ({
      code: code as number | null,
      signal: signal as NodeJS.Signals | null,
    }));
  }

  /** Starts the service with {@link TOKEN} and waits until it listens. */
  static async start(
    folder: string,
    environment: NodeJS.ProcessEnv = {},
    wrapper: string[] = [],
  ): Promise<ServiceProcess> {
    const service = new ServiceProcess(folder, { AUTH_TOKENS: TOKEN, ...environment }, wrapper);
    await service.url();
    return service;
  }

  /** Where it listens, once it does. */
  async url(): Promise<URL> {
    for (;;) {
      const [, url] = /Listening on (https?:[^"\s]+)/.exec(this.stdout) ?? [];
      if (url !== undefined) return new URL(url);
      const output = once(this.child.stdout ?? this.child, 'data');
      await Promise.race([output, this.ended.then(() => Promise.reject(new Error(this.stderr)))]);
    }
  }

  /** Sends a body to `POST /plants`, with {@link TOKEN} and as JSON unless told otherwise. */
  async post(body: string, headers: Record<string, string> = {}, query = ''): Promise<Response> {
    return fetch(new URL(`/plants${query}`, await this.url()), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${TOKEN}`,
        'content-type': 'application/json',
        ...headers,
      },
      body,
    });
  }

  /** Of the process; of the wrapper if that started another. */
  get pid(): number {
    return this.child.pid ?? NaN;
  }

  /** The most memory it has used, in MiB. Linux only. */
  peakMemory(): number {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}
