import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN } from '../support/application';
import { makeFolder, removeFolder } from '../support/folder';
import { useServiceHome } from '../support/service-process';
import { compile, configure, nodeOf, pack, PROJECT, run, usePackages } from './packed';

/** The packages, and the client for itself. It asks the registry, so it is no part of npm test. */

/** What the types of the client accept, and what not. */
const CONSUMER = `import { CreationError, PlantStoreClient } from '@plant-store/client';
const client = new PlantStoreClient({ url: new URL('https://x.example.org'), token: async () => 'x' });
const { name, tag, isReplay } = await client.create({ id: 1n, name: 'Fern' }, { timeout: 1 });
const types: [string, string | undefined, boolean] = [name, tag, isReplay];
const { error, status, outcome } = types as unknown as CreationError;
const failure: [number | undefined, number | undefined, 'not stored' | 'unknown'] = [error, status, outcome];
// @ts-expect-error an id is no string
await client.create({ id: '1', name: failure.join() });
// @ts-expect-error a name is required
await client.create({ id: 1 });
// @ts-expect-error a tag is no null
await client.create({ id: 1, name: 'Fern', tag: null });
`;

const packed = usePackages();

describe.each([
  [
    'module',
    'plants',
    /^(package\.json|README\.md|LICENSE|([a-z]+\/)*[a-z\d.-]+\.(js|d\.ts))$/,
    'node16',
  ],
  // An ES module alone.
  ['client', 'client', /^(package\.json|README\.md|LICENSE|index\.(mjs|d\.mts))$/, 'esm-only'],
] as const)('the package of the %s', (kind, folder, expected, profile) => {
  it('holds what users need and no more', () => {
    const files = run(packed.folder, 'tar', '-tzf', packed[kind])
      .trim()
      .split('\n')
      .map((file) => file.replace(/^package\//, ''));

    expect(files.filter((file) => !expected.test(file) || /spec|test|program/.test(file))).toEqual(
      [],
    );
  });

  it('is the same file, byte for byte, each time it is packed', () => {
    const again = makeFolder();
    const copy = readFileSync(pack(folder, again));
    removeFolder(again);

    expect(copy.equals(readFileSync(packed[kind]))).toBe(true);
  });

  it.each(['publint --strict', `attw --profile ${profile}`])('is faultless to %s', (command) => {
    const [program = '', ...options] = command.split(' ');
    const file = join(PROJECT, 'test/node_modules/.bin', program);

    expect(() => run(packed.folder, file, packed[kind], ...options)).not.toThrow();
  });
});

describe('the client', () => {
  const service = useServiceHome();
  let home: string;
  beforeAll(() => {
    home = join(packed.folder, 'client');
    mkdirSync(home);
    writeFileSync(join(home, 'package.json'), '{"type":"module"}');
    run(home, 'npm', 'install', '--prefer-offline', '--no-audit', packed.client);
    writeFileSync(join(home, 'consumer.ts'), CONSUMER);
  });

  it('comes without other packages', () => {
    const { packages } = JSON.parse(
      readFileSync(join(home, 'node_modules/.package-lock.json'), 'utf8'),
    ) as { packages: object };

    expect(Object.keys(packages)).toEqual(['node_modules/@plant-store/client']);
  });

  it.each([
    ['nodenext', 'nodenext', {}],
    ['bundler', 'preserve', {}],
    // What TypeScript 6 still has of Node.js 10.
    ['node', 'es2022', { ignoreDeprecations: '6.0' }],
  ])('has types for moduleResolution %s', (moduleResolution, module, others) => {
    const lib = ['es2022', 'dom'];
    configure(home, { types: [], lib, noEmit: true, module, moduleResolution, ...others });

    expect(compile(home)).toBe('');
  });

  it('creates a plant on Node.js 20', async () => {
    const { href } = await (await service.start()).url();
    const program = `import { PlantStoreClient } from '@plant-store/client';
      const client = new PlantStoreClient({ url: '${href}', token: '${TOKEN}' });
      await client.create({ id: 2n ** 63n - 1n, name: process.version });`;
    writeFileSync(join(home, 'create.js'), program);

    run(home, nodeOf('20.0.0'), 'create.js');

    expect(service.plants()).toEqual([{ id: 2n ** 63n - 1n, name: 'v20.0.0' }]);
  });
});
