/** Packs the packages as for a release, and checks them. `npm test` does not run it: it needs the tools in test/node_modules. */
import { join } from 'node:path';
import { PROJECT, run, usePackages } from './packed';

const packed = usePackages();

describe.each([
  ['module', /^(package\.json|README\.md|LICENSE|([a-z]+\/)*[a-z\d.-]+\.(js|d\.ts))$/, 'node16'],
  // The client is only an ES module.
  ['client', /^(package\.json|README\.md|LICENSE|index\.(mjs|d\.mts))$/, 'esm-only'],
] as const)('the package of the %s', (kind, expected, profile) => {
  it('contains only the files that users need', () => {
    const files = run(packed.folder, 'tar', '-tzf', packed[kind])
      .trim()
      .split('\n')
      .map((file) => file.replace(/^package\//, ''));

    expect(
      files.filter((file) => !expected.test(file) || /[.]spec[.]|test|program/.test(file)),
    ).toEqual([]);
  });

  it.each(['publint --strict', `attw --profile ${profile}`])('passes %s', (command) => {
    const [program = '', ...options] = command.split(' ');
    const file = join(PROJECT, 'test/node_modules/.bin', program);

    expect(() => run(packed.folder, file, packed[kind], ...options)).not.toThrow();
  });
});
