import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compile, configure, PROJECT, recipes, run, usePackages } from '../packed';
import { installHost } from './hosts';

/** The recipe of docs/embedding.md for the tests of a host, in the runners that hosts use. */

const JEST = join(PROJECT, 'node_modules/jest/bin/jest.js');
const VITEST = join(PROJECT, 'test/node_modules/vitest/vitest.mjs');

const swc = {
  parser: { syntax: 'typescript', decorators: true },
  transform: { legacyDecorator: true, decoratorMetadata: true },
};
const runJest = (type: 'es6' | 'commonjs', settings: object): string[] => {
  const transformer = [require.resolve('@swc/jest'), { jsc: swc, module: { type } }];
  const configuration = {
    testRegex: 'spec\\.ts$',
    testTimeout: 300_000,
    moduleNameMapper: { '^(\\./.+)\\.js$': '$1' },
    transform: { '\\.ts$': transformer },
    ...settings,
  };
  return ['--experimental-vm-modules', JEST, '--config', JSON.stringify(configuration)];
};
const asModules = { extensionsToTreatAsEsm: ['.ts'], setupFiles: ['@nestjs/core'] };
const RUNNERS: [string, type: string, command: string[]][] = [
  [
    'Vitest',
    'module',
    [VITEST, 'run', '--globals', '--testTimeout=300000', '--hookTimeout=300000'],
  ],
  ['Jest with CommonJS', 'commonjs', runJest('commonjs', {})],
  ['Jest with ES modules', 'module', runJest('es6', asModules)],
];

const packed = usePackages();

describe.each([11, 12] as const)('the test of a host on Nest %d', (nest) => {
  let home: string;
  beforeAll(() => {
    ({ home } = installHost(`nest${nest}`, packed));
  });

  it.each(RUNNERS)('passes in %s, and its types are right', (runner, type, command) => {
    const own = join(home, runner.replaceAll(' ', '-'));
    mkdirSync(own);
    for (const [name, code] of recipes()) {
      if (name.startsWith('in-process')) writeFileSync(join(own, name), code);
    }
    writeFileSync(join(own, 'package.json'), JSON.stringify({ type }));
    const typeRoots = [join(PROJECT, 'node_modules/@types')];
    configure(own, { noEmit: true, types: ['node', 'jest'], typeRoots });

    expect(compile(own)).toBe('');
    expect(() => run(own, process.execPath, ...command)).not.toThrow();
  });
});
