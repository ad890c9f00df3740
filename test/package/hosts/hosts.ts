import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { PlantsModuleOptions } from '../../../src/plants';
import type { Headers } from '../../support/application';
import { TestProcess } from '../../support/test-process';
import { compile, configureTypeScript, installNode, type Packed, PROJECT, run } from '../packed';

/** Installs real hosts from their lock files and the packed package. Each runs as a separate process. */

export interface HostKind {
  readonly nest: 11 | 12;
  readonly platform: 'express' | 'fastify';
  readonly build: keyof typeof PROGRAMS;
  /** The version of Node.js. By default, the version that runs the tests. */
  readonly node?: string | undefined;
}

/** The program as TypeScript compiles it to CommonJS and to an ES module, and as Nest builds it with Rspack. */
const PROGRAMS = { cjs: 'main.cjs', mjs: 'main.mjs', rspack: 'main.js' };

/** Returns the folder that contains the dependencies of a host. */
export const dependenciesOf = ({ nest, build }: HostKind): string =>
  `${build === 'rspack' ? 'rspack' : 'nest'}${nest}`;

/** Installs the dependencies and the package as a user would, and builds the host. */
export function installHost(dependencies: string, { folder, module }: Packed): void {
  const home = join(folder, dependencies);
  cpSync(join(__dirname, dependencies), home, { recursive: true });
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
  run(home, 'npm', 'ci', ...quietly);
  run(home, 'npm', 'install', '--no-save', ...quietly, module);

  mkdirSync(join(home, 'src'));
  const source = readFileSync(join(__dirname, 'host.ts'), 'utf8');
  const program = source.replace('../../../src/plants', '@plant-store/nestjs');
  for (const name of ['main.cts', 'main.mts', 'main.ts']) {
    writeFileSync(join(home, 'src', name), program);
  }
  const typeRoots = [join(PROJECT, 'node_modules/@types')];
  configureTypeScript(home, { skipLibCheck: true, typeRoots, rootDir: 'src', outDir: 'dist' });
  if (dependencies.startsWith('rspack')) run(home, 'npx', 'nest', 'build', '--builder', 'rspack');
  else compile(home);
}

export class Host extends TestProcess {
  url!: URL;

  /**
   * Starts an installed host.
   *
   * @throws Error with everything that the host printed, if it exits
   */
  static async start(
    folder: string,
    kind: HostKind,
    options: PlantsModuleOptions,
    environment: NodeJS.ProcessEnv = {},
  ): Promise<Host> {
    const { platform, build, node } = kind;
    const home = join(folder, dependenciesOf(kind));
    const command = [node ? installNode(node) : process.execPath, join('dist', PROGRAMS[build])];
    const { PATH } = process.env;
    const variables = { NO_COLOR: '1', PLATFORM: platform, PLANTS: JSON.stringify(options) };
    const env = { PATH, ...variables, ...environment };
    const host = new Host(command, { cwd: home, env });
    const [, url = ''] = await host.waitForOutput(/Listening on (\S+)\n/);
    return Object.assign(host, { url: new URL(url) });
  }

  /** Sends a request on a new connection, and reads the response. */
  async send(
    target: string,
    headers: Headers = {},
    body: string | Buffer = '',
  ): Promise<{ status: number | undefined; headers: object; body: string }> {
    const [method, path = ''] = target.split(' ');
    const agent = new Agent({ keepAlive: true });
    const outgoing = request(new URL(path, this.url), { method, agent });
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) outgoing.setHeader(name, value);
    }
    outgoing.end(body);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const others = { ...response.headers, date: undefined };
    const result = { status: response.statusCode, headers: others, body: await text(response) };
    // The host may have responded before the whole request was sent.
    outgoing.on('error', () => undefined);
    agent.destroy();
    return result;
  }
}
