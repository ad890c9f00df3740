import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../support/folder';

export const PROJECT = join(__dirname, '../..');

/** The tarballs of both packages, and their folder. */
export interface Packed {
  readonly folder: string;
  readonly module: string;
  readonly client: string;
}

/** Packs both packages before the tests of the calling file or `describe`, and removes them afterwards. */
export function usePackages(): Packed {
  const packed = { folder: makeFolder(), module: '', client: '' };
  beforeAll(() => {
    packed.module = pack('plants', packed.folder);
    packed.client = pack('client', packed.folder);
  });
  afterAll(() => {
    removeFolder(packed.folder);
  });
  return packed;
}

/** Packs a folder of `dist` as docs/releasing.md describes, and returns the file. */
function pack(name: 'plants' | 'client', folder: string): string {
  const to = ['--pack-destination', folder];
  return join(folder, run(PROJECT, 'npm', 'pack', '--silent', `./dist/${name}`, ...to).trim());
}

/** Installs a version of Node.js from npm, and returns the path of its program. */
export function installNode(version: string): string {
  const print = ['node', '--print', 'process.execPath'];
  return run(PROJECT, 'npm', 'exec', '--yes', `--package=node@${version}`, '--', ...print).trim();
}

const GUIDE = readFileSync(join(PROJECT, 'docs/embedding.md'), 'utf8');

/** Reads the programs of docs/embedding.md, with their file names. */
export function readPrograms(): [name: string, code: string][] {
  const blocks = GUIDE.matchAll(/```ts file=(\S+)\n(.*?)```/gs);
  return [...blocks].map(([, name = '', code = '']) => [name, code]);
}

/** Reads the commands of docs/embedding.md that install the module and the dependencies of its programs. */
export function readInstallCommands(): string {
  return [...GUIDE.matchAll(/```sh\n(.*?)```/gs)].map(([, lines = '']) => lines).join('');
}

/** Reads the example in a language under a heading of docs/clients.md. */
export function readExample(heading: string, language: string): string {
  const page = readFileSync(join(PROJECT, 'docs/clients.md'), 'utf8');
  const section = page.split(/^## /m).find((text) => text.startsWith(heading));
  const [, code] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(section ?? '') ?? [];
  if (code === undefined) throw new Error(`No ${language} under "${heading}".`);
  return code;
}

/** Configures TypeScript as hosts do, with additional compiler options. */
export function configureTypeScript(home: string, options: object): void {
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2022',
    strict: true,
    types: ['node'],
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    ...options,
  };
  writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
}

/** Compiles a TypeScript project, and returns the output of the compiler. */
export function compile(home: string): string {
  return run(home, join(PROJECT, 'node_modules/.bin/tsc'), '-p', '.');
}

/** Runs a program to its end, and returns its standard output. */
export function run(cwd: string, program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
