import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../../support/folder';
import { installHost, packPackage, recipes, run } from './hosts';

/** The recipe of docs/embedding.md for the tests of a host, in the runners that hosts use. */

const PROJECT = join(__dirname, '../../..');
const JEST = join(PROJECT, 'node_modules/jest/bin/jest.js');
const VITEST = join(PROJECT, 'test/node_modules/vitest/vitest.mjs');

const CONFIGURATION = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2022',
    strict: true,
    ...{ experimentalDecorators: true, emitDecoratorMetadata: true, noEmit: true },
    types: ['node', 'jest'],
    typeRoots: [join(PROJECT, 'node_modules/@types')],
  },
  include: ['*.ts'],
};

const swc = {
  parser: { syntax: 'typescript', decorators: true },
  transform: { legacyDecorator: true, decoratorMetadata: true },
};
const runJest = (type: 'es6' | 'commonjs', settings: object): string[] => {
  const transformer = [require.resolve('@swc/jest'), { jsc: swc, module: { type } }];
  const configuration = {
    testRegex: 'spec\\.ts$',
    moduleNameMapper: { '^(\\./.+)\\.js$': '$1' },
    transform: { '\\.ts$': transformer },
    ...settings,
  };
  return ['--experimental-vm-modules', JEST, '--config', JSON.stringify(configuration)];
};
const RUNNERS = [
  ['Vitest', 'module', [VITEST, 'run', '--globals']],
  ['Jest with CommonJS', 'commonjs', runJest('commonjs', {})],
  [
    'Jest with ES modules',
    'module',
    runJest('es6', { extensionsToTreatAsEsm: ['.ts'], setupFiles: ['@nestjs/core'] }),
  ],
] as const;

let folder: string;
let tarball: string;
beforeAll(() => {
  folder = makeFolder();
  tarball = packPackage(folder);
});
afterAll(() => {
  removeFolder(folder);
});

describe.each([11, 12] as const)('the test of a host on Nest %d', (nest) => {
  let home: string;
  beforeAll(() => {
    ({ home } = installHost(folder, `nest${nest}`, tarball));
  }, 240_000);

  it.each(RUNNERS)(
    'passes in %s, and its types are right',
    (runner, type, command) => {
      const own = join(home, runner.replaceAll(' ', '-'));
      mkdirSync(own);
      for (const [name, code] of recipes('in-process')) writeFileSync(join(own, name), code);
      writeFileSync(join(own, 'package.json'), JSON.stringify({ type }));
      writeFileSync(join(own, 'tsconfig.json'), JSON.stringify(CONFIGURATION));

      expect(run(own, join(PROJECT, 'node_modules/.bin/tsc'), '-p', '.')).toBe('');
      expect(() => run(own, process.execPath, ...command)).not.toThrow();
    },
    120_000,
  );
});
