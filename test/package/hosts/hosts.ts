import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { Agent, request, type IncomingMessage } from 'node:http';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { PlantsModuleOptions } from '../../../src/plants';
import { TestProcess } from '../../support/test-process';
import { nodeOf, type Packed, run } from '../packed';
import { contractCases } from './contract-cases';

/** Real hosts, installed from their lock files and the packed package, each a process of its own. */

export interface HostKind {
  readonly nest: 11 | 12;
  readonly platform: 'express' | 'fastify';
  readonly modules: 'cjs' | 'mjs';
  /** A version of Node.js; the one that runs the tests unless it is given. */
  readonly node?: string | undefined;
}

/** An installed host, and what the package added to it. */
export interface Installation {
  readonly home: string;
  readonly packages: number;
  readonly kib: number;
}

/** Installs a host, by the name of its folder here, and the package in it, as a user would. */
export function installHost(
  host: `${'nest' | 'rspack'}${HostKind['nest']}`,
  { folder, module }: Packed,
): Installation {
  const home = join(folder, host);
  mkdirSync(home);
  const files = [`${host}/package.json`, `${host}/package-lock.json`, 'host.cjs', 'host.mjs'];
  for (const name of [...files, 'orchard.cjs']) {
    copyFileSync(join(__dirname, name), join(home, basename(name)));
  }
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
  run(home, 'npm', 'ci', ...quietly);
  const before = measure(home);
  run(home, 'npm', 'install', '--no-save', ...quietly, module);
  const after = measure(home);
  return { home, packages: after.packages - before.packages, kib: after.kib - before.kib };
}

function measure(home: string): { packages: number; kib: number } {
  const lock = readFileSync(join(home, 'node_modules/.package-lock.json'), 'utf8');
  const { packages } = JSON.parse(lock) as { packages: object };
  const [kib] = run(home, 'du', '-sk', 'node_modules').split('\t');
  return { packages: Object.keys(packages).length, kib: Number(kib) };
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

export class Host extends TestProcess {
  url!: URL;
  /** Its SQLite file, if it is told to have one. */
  database = '';

  /** Starts a host, with the module if there are options for it. */
  static start(home: string, kind: HostKind, options?: PlantsModuleOptions): Promise<Host> {
    const env = { PLATFORM: kind.platform, PLANTS: JSON.stringify(options) };
    return Host.startProgram(home, `host.${kind.modules}`, env, kind.node && nodeOf(kind.node));
  }

  /**
   * Starts a program that says where it listens.
   *
   * @throws Error with all that it printed, when it ends
   */
  static async startProgram(
    home: string,
    program: string,
    environment: NodeJS.ProcessEnv = {},
    node = process.execPath,
  ): Promise<Host> {
    const database = join(mkdtempSync(join(home, 'data-')), 'plants.db');
    const env = { PATH: process.env.PATH, NO_COLOR: '1', DATABASE: database, ...environment };
    const host = new Host([node, program], { cwd: home, env });
    const [, url = ''] = await host.says(/Listening on (\S+)\n/);
    return Object.assign(host, { url: new URL(url), database });
  }

  /** Sends a request and reads the answer. Each has a connection of its own. */
  async send(
    method: string,
    path: string,
    headers: Readonly<Record<string, string | string[] | undefined>> = {},
    body: string | Buffer = '',
    isChunked = false,
  ): Promise<Answer> {
    const agent = new Agent({ keepAlive: true });
    const outgoing = request(new URL(path, this.url), { method, agent });
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) outgoing.setHeader(name, value);
    }
    const length = Buffer.byteLength(body);
    if (!isChunked && method === 'POST') outgoing.setHeader('content-length', length);
    outgoing.end(body);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const others = { ...response.headers, date: undefined };
    const answer = { status: response.statusCode, headers: others, body: await text(response) };
    // The host may have answered before all was sent.
    outgoing.on('error', () => undefined);
    agent.destroy();
    return answer;
  }
}

/**
 * Holds the answers of a host against the contract.
 *
 * @param wrap what the host makes of the answer to a creation
 */
export async function expectContract(host: Host, wrap = (plant: object) => plant): Promise<void> {
  for (const { body, headers, isChunked, expected } of contractCases) {
    const all = { authorization: 'Bearer host-token', ...json, ...headers };
    const answer = await host.send('POST', '/api/v1/plants', all, body, isChunked);
    const request = { body: String(body).slice(0, 60), headers };
    const value = JSON.parse(answer.body) as { error?: unknown };
    const isRefusal = typeof expected === 'number';
    expect({ request, status: answer.status, answer: isRefusal ? value.error : value }).toEqual({
      request,
      status: isRefusal ? Math.floor(expected / 100) : 200,
      answer: isRefusal ? expected : wrap(expected),
    });
  }
}

const json = { 'content-type': 'application/json' };
const ownRequests: Parameters<Host['send']>[] = [
  ['POST', '/api/v1/trees', json, '{"id":9007199254740993,"name":" Oak "}'],
  ['POST', '/api/v1/trees', json, '{'],
  ['POST', '/api/v1/trees', json, ''],
  ['POST', '/api/v1/trees', json, `{"name":"${'x'.repeat(400)}"}`],
  ['POST', '/api/v1/trees', json, `{"name":"${'x'.repeat(400)}"}`, true],
  ['POST', '/api/v1/trees', json, '{"name":"Oak"}', true],
  ['POST', '/api/v1/trees', { 'content-type': 'application/json; charset=latin1' }, '{"a":"b"}'],
  ['POST', '/api/v1/trees', { 'content-type': 'application/x-www-form-urlencoded' }, 'a=b'],
  ['POST', '/api/v1/trees', { 'content-type': 'text/plain' }, ' text '],
  ['POST', '/api/v1/trees', { 'content-type': ';;' }, 'x'],
  ['POST', '/api/v1/trees', { ...json, 'content-encoding': 'gzip' }, 'not compressed'],
  ['POST', '/api/v1/trees', {}, ''],
  ['POST', '/api/v2/plants', json, '{'],
  ['GET', '/api/v1/plants'],
  ['GET', '/api/v1/trees/number/%207%20'],
  ['GET', '/api/v1/trees/guarded'],
  ['GET', '/api/v1/trees/broken'],
  ['GET', '/api/v1/nothing'],
  ['HEAD', '/api/v1/trees/number/7'],
  ['OPTIONS', '/api/v1/trees'],
  ['DELETE', '/api/v1/trees'],
  ['GET', '/%zz'],
];

/** What a host answers at its own routes, and beside them. */
export async function answerOwn(host: Host): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const each of ownRequests) answers.push(await host.send(...each));
  return answers;
}
