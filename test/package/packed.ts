import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../support/folder';

export const PROJECT = join(__dirname, '../..');

/** The tarballs of both packages, and the folder that they are in. */
export interface Packed {
  readonly folder: string;
  readonly module: string;
  readonly client: string;
}

/** Both packages, packed, while the tests of the calling file or `describe` run. */
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

/** Packs a folder of `dist`, as docs/releasing.md says, and gives back the file. */
function pack(name: 'plants' | 'client', folder: string): string {
  const to = ['--pack-destination', folder];
  return join(folder, run(PROJECT, 'npm', 'pack', '--silent', `./dist/${name}`, ...to).trim());
}

/** The program of a version of Node.js, from npm. */
export function nodeOf(version: string): string {
  const print = ['node', '--print', 'process.execPath'];
  return run(PROJECT, 'npm', 'exec', '--yes', `--package=node@${version}`, '--', ...print).trim();
}

const GUIDE = readFileSync(join(PROJECT, 'docs/embedding.md'), 'utf8');

/** The programs of docs/embedding.md, by their names. */
export function recipes(): [name: string, code: string][] {
  const blocks = GUIDE.matchAll(/```ts file=(\S+)\n(.*?)```/gs);
  return [...blocks].map(([, name = '', code = '']) => [name, code]);
}

/** The lines of docs/embedding.md that install the module and what its programs need. */
export function installLines(): string {
  return [...GUIDE.matchAll(/```sh\n(.*?)```/gs)].map(([, lines = '']) => lines).join('');
}

/** The example of docs/clients.md in a language, under a heading. */
export function example(heading: string, language: string): string {
  const page = readFileSync(join(PROJECT, 'docs/clients.md'), 'utf8');
  const section = page.split(/^## /m).find((text) => text.startsWith(heading));
  const [, code] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(section ?? '') ?? [];
  if (code === undefined) throw new Error(`No ${language} under "${heading}".`);
  return code;
}

/** Configures TypeScript as hosts have it, with further options of the compiler. */
export function configure(home: string, options: object): void {
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'es2022', strict: true, types: ['node'] },
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true },
    ...options,
  };
  writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
}

/** Compiles a TypeScript project, and gives back the errors. */
export function compile(home: string): string {
  return run(home, join(PROJECT, 'node_modules/.bin/tsc'), '-p', '.');
}

/** Runs a program to its end, and gives back what it printed. */
export function run(cwd: string, program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
