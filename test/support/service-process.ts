import { once } from 'node:events';
import { TOKEN } from './application';
import { ProgramProcess } from './plant-store';

/** The built service as a process of its own, as an operator runs it. */
export class ServiceProcess extends ProgramProcess {
  readonly ended = this.closed;

  /**
   * @param folder the working directory
   * @param wrapper a program, with its arguments, that runs the service
   */
  constructor(folder: string, environment: NodeJS.ProcessEnv = {}, wrapper: string[] = []) {
    super(['serve'], { PORT: '0', ...environment }, { cwd: folder, wrapper });
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

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}
