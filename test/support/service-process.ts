import { join } from 'node:path';
import type { Plant } from '../../src/plants';
import { JSON_HEADERS, TOKEN } from './application';
import { makeFolder, removeFolder } from './folder';
import { CliProcess } from './plant-store';
import { memoryFolder } from './run-folder';
import { readPlants } from './sqlite';
import { until } from './until';

/** A process of the built service, as an operator runs it. */
export class ServiceProcess extends CliProcess {
  readonly ended = this.closed;

  /**
   * @param folder the working directory
   * @param wrapper a program, with its arguments, that runs the service
   * @param program the path of the CLI; that of the build by default
   */
  constructor(
    folder: string,
    environment: NodeJS.ProcessEnv = {},
    wrapper: string[] = [],
    program?: string,
  ) {
    super(['serve'], { PORT: '0', ...environment }, { cwd: folder, wrapper, program });
  }

  /** Waits until the service listens. Returns its address. */
  async url(): Promise<URL> {
    const [, url = ''] = await this.waitForOutput(/Listening on (https?:[^"\s]+)/);
    return new URL(url);
  }

  /** Sends a body to `POST /plants`, by default with {@link JSON_HEADERS}. */
  async post(body: string, headers: Record<string, string> = {}, query = ''): Promise<Response> {
    return fetch(new URL(`/plants${query}`, await this.url()), {
      method: 'POST',
      headers: { ...JSON_HEADERS, ...headers },
      body,
    });
  }

  async getStatus(path: string): Promise<number> {
    return (await fetch(new URL(path, await this.url()))).status;
  }

  async waitUntilReady(): Promise<void> {
    await until(async () => (await this.getStatus('/health/ready')) === 200);
  }

  /** The lines of the log, parsed as JSON. */
  get lines(): Record<string, unknown>[] {
    const lines = this.stdout.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** The process id. It is that of the wrapper if the wrapper runs the service as a child process. */
  get pid(): number {
    return this.child.pid ?? NaN;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

/** A folder for services. {@link close} ends the services and removes the folder. */
class ServiceHome {
  folder = '';
  private services: ServiceProcess[] = [];

  /** The path of the default database. */
  get file(): string {
    return join(this.folder, 'data/plants.db');
  }

  /** Starts a service with {@link TOKEN}, and waits until it listens. */
  async start(
    environment?: NodeJS.ProcessEnv,
    wrapper?: string[],
    program?: string,
  ): Promise<ServiceProcess> {
    const service = this.spawn({ AUTH_TOKENS: TOKEN, ...environment }, wrapper, program);
    await service.url();
    return service;
  }

  /** Starts a service without a token, and does not wait until it listens. */
  spawn(environment?: NodeJS.ProcessEnv, wrapper?: string[], program?: string): ServiceProcess {
    const service = new ServiceProcess(this.folder, environment, wrapper, program);
    this.services.push(service);
    return service;
  }

  plants(): Plant[] {
    return readPlants(this.file);
  }

  async close(): Promise<void> {
    await Promise.all(this.services.map((service) => service.end('SIGKILL')));
    this.services = [];
    removeFolder(this.folder);
  }
}

/** Gives each test of a suite a folder for services. */
export function useServiceHome(): ServiceHome {
  const home = new ServiceHome();
  beforeEach(() => {
    home.folder = makeFolder(memoryFolder());
  });
  afterEach(() => home.close());
  return home;
}

/** Gives all tests of a suite one folder, for services that they share. */
export function shareServiceHome(): ServiceHome {
  const home = new ServiceHome();
  beforeAll(() => {
    home.folder = makeFolder(memoryFolder());
  });
  afterAll(() => home.close());
  return home;
}
