import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { Agent, request, type IncomingMessage } from 'node:http';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { PlantsModuleOptions } from '../../../src/plants';
import { recordProcess } from '../../support/run-folder';
import { contractCases } from './contract-cases';

/** Real hosts, installed from their lock files and the packed package, each a process of its own. */

const PROJECT = join(__dirname, '../../..');

export interface HostKind {
  readonly nest: 11 | 12;
  readonly platform: 'express' | 'fastify';
  readonly modules: 'cjs' | 'mjs';
  /** A version of Node.js; the one that runs the tests unless it is given. */
  readonly node?: string;
}

/** Packs what was built. */
export function packPackage(folder: string): string {
  return run(PROJECT, process.execPath, 'tools/package.mjs', folder).trim();
}

/** Installs a host, by the name of its folder here, and the package in it, as a user would. */
export function installHost(
  folder: string,
  host: `${'nest' | 'rspack'}${HostKind['nest']}`,
  tarball: string,
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
  run(home, 'npm', 'install', '--no-save', ...quietly, tarball);
  const after = measure(home);
  return { home, packages: after.packages - before.packages, kib: after.kib - before.kib };
}

/** An installed host, and what the package added to it. */
export interface Installation {
  readonly home: string;
  readonly packages: number;
  readonly kib: number;
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

export class Host {
  output = '';

  private constructor(
    readonly url: URL,
    /** Its SQLite file, if it is told to have one. */
    readonly database: string,
    private readonly child: ReturnType<typeof spawn>,
  ) {}

  /** Starts a host, with the module if there are options for it. */
  static start(home: string, kind: HostKind, options?: PlantsModuleOptions): Promise<Host> {
    const env = { PLATFORM: kind.platform, PLANTS: JSON.stringify(options) };
    return Host.startProgram(home, `host.${kind.modules}`, env, nodeOf(kind));
  }

  /**
   * Starts a program that says where it listens.
   *
   * @throws Error with all that it printed, when it ends
   */
  static async startProgram(
    home: string,
    program: string,
    env: NodeJS.ProcessEnv = {},
    node = process.execPath,
  ): Promise<Host> {
    const database = join(mkdtempSync(join(home, 'data-')), 'plants.db');
    const child = spawn(node, [program], {
      cwd: home,
      env: { PATH: process.env.PATH, NO_COLOR: '1', DATABASE: database, ...env },
    });
    recordProcess(child);
    let output = '';
    const url = new Promise<URL>((resolve, reject) => {
      const collect = (chunk: unknown): void => {
        output += String(chunk);
        const [, address] = /Listening on (\S+)\n/.exec(output) ?? [];
        if (address !== undefined) resolve(new URL(address));
      };
      child.stdout.on('data', collect);
      child.stderr.on('data', collect);
      child.on('close', () => {
        reject(new Error(output));
      });
    });
    const host = new Host(await url, database, child);
    child.stderr.on('data', (chunk) => (host.output += String(chunk)));
    return host;
  }

  async stop(): Promise<void> {
    if (this.child.exitCode === null && this.child.kill()) await once(this.child, 'close');
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
 * The answers of a host to the cases of the contract, and what they should be.
 *
 * @param wrap what the host makes of the answer to a creation
 */
export async function answerCases(
  host: Host,
  wrap = (plant: object) => plant,
): Promise<{ actual: object[]; expected: object[] }> {
  const actual: object[] = [];
  const expected: object[] = [];
  for (const each of contractCases) {
    const { name, body, isChunked } = each;
    const headers = { authorization: 'Bearer host-token', ...json, ...each.headers };
    const answer = await host.send('POST', '/api/v1/plants', headers, body, isChunked);
    const { status } = answer;
    const value = JSON.parse(answer.body) as { error?: unknown };
    if (typeof each.expected === 'number') {
      actual.push({ name, status, error: value.error });
      expected.push({ name, status: Math.floor(each.expected / 100), error: each.expected });
    } else {
      actual.push({ name, status, body: value });
      expected.push({ name, status: 200, body: wrap(each.expected) });
    }
  }
  return { actual, expected };
}

const json = { 'content-type': 'application/json' };
const ownRequests: Parameters<Host['send']>[] = [
  ['POST', '/api/v1/trees', json, '{"id":9007199254740993,"name":" Oak "}'],
  ['POST', '/api/v1/trees', json, '{'],
  ['POST', '/api/v1/trees', json, ''],
  ['POST', '/api/v1/trees', json, '[1,2]'],
  ['POST', '/api/v1/trees', json, `{"name":"${'x'.repeat(400)}"}`],
  ['POST', '/api/v1/trees', json, `{"name":"${'x'.repeat(400)}"}`, true],
  ['POST', '/api/v1/trees', json, '{"name":"Oak"}', true],
  ['POST', '/api/v1/trees', { 'content-type': 'application/json; charset=latin1' }, '{"a":"b"}'],
  ['POST', '/api/v1/trees', { 'content-type': 'application/x-www-form-urlencoded' }, 'a=b'],
  ['POST', '/api/v1/trees', { 'content-type': 'text/plain' }, ' text '],
  ['POST', '/api/v1/trees', { 'content-type': 'application/x-unread-' }, 'bytes'],
  ['POST', '/api/v1/trees', { 'content-type': ';;' }, 'x'],
  ['POST', '/api/v1/trees', { ...json, 'content-encoding': 'gzip' }, 'not compressed'],
  ['POST', '/api/v1/trees', {}, ''],
  ['POST', '/api/v1/trees/', json, '{"name":"Oak"}'],
  ['POST', '/api/v1/plant', json, '{"name":"Oak"}'],
  ['POST', '/api/v2/plants', json, '{'],
  ['POST', '/plants', json, '{'],
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

/** The program of a version of Node.js, from npm. */
function nodeOf({ node }: HostKind): string {
  if (node === undefined) return process.execPath;
  const print = ['node', '--print', 'process.execPath'];
  return run(PROJECT, 'npm', 'exec', '--yes', `--package=node@${node}`, '--', ...print).trim();
}

/** The programs of docs/embedding.md whose names begin so, by their names. */
export function recipes(start = ''): Map<string, string> {
  const guide = readFileSync(join(PROJECT, 'docs/embedding.md'), 'utf8');
  const all = [...guide.matchAll(/```ts file=(\S+)\n(.*?)```/gs)];
  return new Map(
    all.flatMap(([, name = '', code = '']) => (name.startsWith(start) ? [[name, code]] : [])),
  );
}

/** Runs a program to its end, and gives back what it printed. */
export function run(cwd: string, program: string, ...parameters: string[]): string {
  return execFileSync(program, parameters, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}
