import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../support/folder';

export const PROJECT = join(__dirname, '../..');

/** A folder with the packed package in it, while the tests of the calling file or `describe` run. */
export function usePackage(): { readonly folder: string; readonly tarball: string } {
  const packed = { folder: makeFolder(), tarball: '' };
  beforeAll(() => {
    const pack = ['tools/package.mjs', packed.folder];
    packed.tarball = run(PROJECT, process.execPath, ...pack).trim();
  });
  afterAll(() => {
    removeFolder(packed.folder);
  });
  return packed;
}

/** The programs of docs/embedding.md, by their names. */
export function recipes(): [name: string, code: string][] {
  const guide = readFileSync(join(PROJECT, 'docs/embedding.md'), 'utf8');
  const blocks = guide.matchAll(/```ts file=(\S+)\n(.*?)```/gs);
  return [...blocks].map(([, name = '', code = '']) => [name, code]);
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
