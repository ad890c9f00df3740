import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { TOKEN } from '../support/application';
import { useServiceHome } from '../support/service-process';
import { compile, configure, PROJECT, run, usePackage } from './packed';

/** The package, and its client for itself. It asks the registry, so it is no part of npm test. */

/** What a package may hold. */
const FILES =
  /^package\/(package\.json|README\.md|LICENSE|CHANGELOG\.md|docs\/.*\.(md|svg|yml|yaml|json|conf|cfg|service)|dist\/(plants|client|program)\/.*\.(m?js|d\.m?ts)|dist\/program\/(LICENSES\.txt|ui\/.*))$/;

/** What the types of the client accept, and what not. */
const CONSUMER = `import { CreationError, PlantStoreClient } from 'plant-store/client';
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

const packed = usePackage();

describe('the package', () => {
  it('holds what users need and no more', () => {
    const files = run(packed.folder, 'tar', '-tzf', packed.tarball).trim().split('\n');

    const strangers = files.filter((file) => !FILES.test(file) || /spec|test|bench/.test(file));
    const manifest = run(packed.folder, 'tar', '-xzOf', packed.tarball, 'package/package.json');

    expect(strangers).toEqual([]);
    expect(JSON.parse(manifest)).not.toHaveProperty('scripts');
  });

  it('names no source map and shows no picture that it has not', () => {
    run(packed.folder, 'tar', '-xzf', packed.tarball);
    const home = join(packed.folder, 'package');
    const read = (file: string) => readFileSync(join(home, file), 'utf8');

    const withMap = globSync('**/*.{js,mjs}', { cwd: home }).filter((file) =>
      /^\/\/# sourceMappingURL/m.test(read(file)),
    );
    const pictures = globSync('**/*.md', { cwd: home }).flatMap((page) =>
      [...read(page).matchAll(/!\[[^\]]*\]\(([^):]+)\)/g)].map(([, picture = '']) =>
        join(dirname(page), picture),
      ),
    );

    expect(withMap).toEqual([]);
    expect(pictures.filter((picture) => !existsSync(join(home, picture)))).toEqual([]);
  });

  it.each([
    'publint --strict',
    'attw --entrypoints .',
    // The client is an ES module alone.
    'attw --entrypoints client --profile esm-only',
  ])('is faultless to %s', (command) => {
    const [program = '', ...options] = command.split(' ');
    const file = join(PROJECT, 'test/node_modules/.bin', program);

    expect(() => run(packed.folder, file, packed.tarball, ...options)).not.toThrow();
  });
});

describe('the client of the package', () => {
  const service = useServiceHome();
  let home: string;
  beforeAll(() => {
    home = join(packed.folder, 'client');
    mkdirSync(home);
    writeFileSync(join(home, 'package.json'), '{"type":"module"}');
    run(home, 'npm', 'install', '--prefer-offline', '--no-audit', packed.tarball);
    writeFileSync(join(home, 'consumer.ts'), CONSUMER);
  });

  it('comes with two other packages, and without Nest', () => {
    const packages = readdirSync(join(home, 'node_modules')).filter(
      (name) => !name.startsWith('.'),
    );

    expect(packages).toEqual(['pg-connection-string', 'plant-store', 'toad-cache']);
  });

  it('leaves a host that lacks packages with a sentence that names them', () => {
    const load = () => run(home, process.execPath, '--eval', 'require("plant-store")');

    expect(load).toThrow(
      'The module of plant-store needs other packages: npm install @nestjs/common @nestjs/core class-transformer class-validator\n',
    );
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
    const program = `import { PlantStoreClient } from 'plant-store/client';
      const client = new PlantStoreClient({ url: '${href}', token: '${TOKEN}' });
      await client.create({ id: 2n ** 63n - 1n, name: process.version });`;
    writeFileSync(join(home, 'create.js'), program);

    run(home, 'npm', 'exec', '--yes', '--package=node@20.0.0', '--', 'node', 'create.js');

    expect(service.plants()).toEqual([{ id: 2n ** 63n - 1n, name: 'v20.0.0' }]);
  });
});
