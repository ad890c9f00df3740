import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { buildSync } from 'esbuild';
import { makeFolder, removeFolder } from '../support/folder';
import { PostgresServer } from '../support/postgres';
import { packPackage, recipes, run } from './hosts/hosts';
import { TOKEN } from '../support/application';
import { freePort } from '../support/free-port';
import { useServiceHome } from '../support/service-process';

/**
 * Installs the package as a user would, beside hosts that are not built with our configuration, and
 * runs the recipes of docs/embedding.md in them. It asks the registry, so it is no part of npm test.
 */

const PROJECT = join(__dirname, '../..');
const FASTIFY = '@nestjs/platform-fastify';
const PLANT = '{"id":9007199254740993,"name":"Fern"}';

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

const { devDependencies } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as {
  devDependencies: Record<string, string>;
};

let folder: string;
let tarball: string;
let postgres: PostgresServer;
let host: ChildProcess | undefined;
let output = '';
beforeAll(async () => {
  postgres = await PostgresServer.start();
  folder = makeFolder();
  tarball = packPackage(folder);
}, 120_000);
afterEach(async () => {
  if (host?.exitCode === null && host.kill()) await once(host, 'exit');
});
afterAll(async () => {
  await postgres.remove();
  removeFolder(folder);
});

describe('the package', () => {
  it('holds what users need and no more', () => {
    const files = run(folder, 'tar', '-tzf', tarball).trim().split('\n');

    const manifest = run(folder, 'tar', '-xzOf', tarball, 'package/package.json');
    const strangers = files.filter(
      (file) =>
        !/^package\/(package\.json|README\.md|LICENSE|CHANGELOG\.md|docs\/.*\.(md|svg|yml|yaml|json|conf|cfg|service)|dist\/.*\.(m?js|d\.m?ts)|dist\/program\/(LICENSES\.txt|ui\/.*))$/.test(
          file,
        ),
    );
    expect(strangers).toEqual([]);
    expect(Object.keys(JSON.parse(manifest) as object)).not.toContain('scripts');
    expect(
      files.filter((file) => /spec|test|bench|dist\/(commands|openapi|server)/.test(file)),
    ).toEqual([]);
  });

  it('names no source map and shows no picture that it has not', () => {
    run(folder, 'tar', '-xzf', tarball);
    const home = join(folder, 'package');
    const code = globSync('**/*.{js,mjs}', { cwd: home });
    const pages = globSync('**/*.md', { cwd: home });

    const withMap = code.filter((file) => /^\/\/# sourceMappingURL/m.test(read(home, file)));
    const missing = pages.flatMap((page) =>
      [...read(home, page).matchAll(/!\[[^\]]*\]\(([^):]+)\)/g)].flatMap(([, target = '']) =>
        existsSync(join(home, dirname(page), target)) ? [] : [`${page}: ${target}`],
      ),
    );

    expect({ withMap, missing }).toEqual({ withMap: [], missing: [] });
  });

  it.each([
    'publint --strict',
    'attw --entrypoints .',
    // The client is an ES module alone.
    'attw --entrypoints client --profile esm-only',
  ])(
    'is faultless to %s',
    (command) => {
      const [program = '', ...options] = command.split(' ');
      const file = join(PROJECT, 'test/node_modules/.bin', program);

      expect(() => run(folder, file, tarball, ...options)).not.toThrow();
    },
    60_000,
  );
});

describe('the client of the package', () => {
  const service = useServiceHome();
  let home: string;
  beforeAll(() => {
    home = join(folder, 'client');
    mkdirSync(home);
    writeFileSync(join(home, 'package.json'), '{"type":"module"}');
    run(home, 'npm', 'install', '--prefer-offline', '--no-audit', tarball);
    writeFileSync(join(home, 'consumer.ts'), CONSUMER);
  }, 240_000);

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
    ['nodenext', 'nodenext'],
    ['bundler', 'preserve'],
    // What TypeScript 6 still has of Node.js 10.
    ['node', 'es2022'],
  ])('has types for moduleResolution %s', (moduleResolution, module) => {
    const old = moduleResolution === 'node' && { ignoreDeprecations: '6.0' };
    const options = { strict: true, target: 'es2022', types: [], module, moduleResolution, ...old };
    const compilerOptions = { ...options, lib: ['es2022', 'dom'], outDir: 'dist', rootDir: '.' };
    writeFileSync(join(home, 'tsconfig.json'), JSON.stringify({ compilerOptions }));

    expect(run(home, join(PROJECT, 'node_modules/.bin/tsc'), '-p', '.')).toBe('');
  });

  it('creates a plant on Node.js 20', async () => {
    const { href } = await (await service.start()).url();
    const program = `import { PlantStoreClient } from 'plant-store/client';
      const client = new PlantStoreClient({ url: '${href}', token: '${TOKEN}' });
      await client.create({ id: 2n ** 63n - 1n, name: process.version });`;
    writeFileSync(join(home, 'create.js'), program);

    run(home, 'npm', 'exec', '--yes', '--package=node@20.0.0', '--', 'node', 'create.js');

    expect(service.plants()).toEqual([{ id: 2n ** 63n - 1n, name: 'v20.0.0' }]);
  }, 120_000);
});

describe.each([
  ['an ESM host on Fastify', 'module', FASTIFY, true],
  ['a CommonJS host on Express', 'commonjs', '@nestjs/platform-express', false],
] as const)('in %s', (_what, type, platform, withSwagger) => {
  let home: string;
  beforeAll(() => {
    home = join(folder, type);
    makeHost(home, type, platform, withSwagger);
  }, 240_000);

  it('type-checks, declarations included', () => {
    expect(run(home, join(PROJECT, 'node_modules/.bin/tsc'), '-p', '.')).toBe('');
  }, 120_000);

  it('creates a plant by the default recipe', async () => {
    const url = await start(home, 'default');

    expect(await postWithPrintedToken(url)).toBe('200 {"name":"Fern"}');
    expect(await post(new URL('/plants', url), {})).toMatch(/^401 {"error":40100/);
  }, 60_000);

  it('creates a plant by the program that comes with it', async () => {
    const url = await start(home, '../node_modules/plant-store/dist/program/plant-store');

    expect(await postWithPrintedToken(url)).toBe('200 {"name":"Fern"}');
    const document = await fetch(new URL('/openapi.json', url));
    expect(document.status).toBe(200);
    expect(run(home, 'npx', '--no', '--', 'plant-store', '--version')).toBe('1.0.0\n');
  }, 60_000);

  it('creates a plant by the recipe with a guard and PostgreSQL', async () => {
    await postgres.execute('DROP TABLE IF EXISTS plants, plants_migrations');
    const url = new URL('/greenhouse/plants', await start(home, 'guard'));

    const health = await fetch(new URL('/health', url));
    expect(await health.json()).toMatchObject({ info: { plants: { status: 'up' } } });
    expect(await post(url, { 'x-gardener': 'ada' })).toBe('200 {"name":"Fern"}');
    expect(await post(url, { 'x-gardener': 'eve' })).toMatch(/^403 {"error":40300/);
    expect(await postgres.plants()).toEqual([{ id: 9_007_199_254_740_993n, name: 'Fern' }]);
  }, 60_000);

  it('starts from a bundle, once the file that it asks for is beside it', async () => {
    const lonely = join(folder, `bundled-${type}`);
    const outfile = join(lonely, 'dist/default.js');
    buildSync({
      entryPoints: [join(home, 'dist/default.js')],
      outfile,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      define: { 'import.meta.url': 'fileUrl' },
      banner: { js: "const fileUrl = require('node:url').pathToFileURL(__filename).href;" },
      external: [
        platform === FASTIFY ? '@nestjs/platform-express' : FASTIFY,
        ...['@nestjs/microservices', '@nestjs/websockets', '@nestjs/swagger'],
        ...['@fastify/static', '@fastify/view', '@fastify/multipart', '@as-integrations/*', 'pg*'],
      ],
      logLevel: 'silent',
    });

    await expect(start(lonely, 'default')).rejects.toThrow(
      /copy node_modules\/plant-store\/dist\/plants\/persistence\/sqlite\/sqlite\.worker\.js to .*bundled/,
    );
    copyFileSync(
      join(home, 'node_modules/plant-store/dist/plants/persistence/sqlite/sqlite.worker.js'),
      join(lonely, 'dist/sqlite.worker.cjs'),
    );
    const url = await start(lonely, 'default');
    expect(await postWithPrintedToken(url)).toBe('200 {"name":"Fern"}');
  }, 60_000);
});

function read(home: string, file: string): string {
  return readFileSync(join(home, file), 'utf8');
}

/** A small host of its own configuration, with the recipes as its programs. */
function makeHost(home: string, type: string, platform: string, withSwagger: boolean): void {
  mkdirSync(join(home, 'src'), { recursive: true });
  const pinned = [
    ...['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'],
    ...['@types/node', 'class-transformer', 'class-validator', 'pg'],
  ];
  if (withSwagger) pinned.push('@nestjs/swagger');
  writeFileSync(
    join(home, 'package.json'),
    JSON.stringify({
      type,
      dependencies: {
        'plant-store': `file:${tarball}`,
        [platform]: '^12.0.0',
        ...{ '@nestjs/config': '^12.0.0', '@nestjs/terminus': '^12.0.0' },
        ...Object.fromEntries(pinned.map((name) => [name, devDependencies[name]])),
      },
    }),
  );
  writeFileSync(
    join(home, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        module: 'nodenext',
        target: 'es2022',
        strict: true,
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        outDir: 'dist',
        rootDir: 'src',
        types: ['node'],
      },
      include: ['src'],
    }),
  );
  for (const [name, code] of recipes()) {
    // The tests of a host run in its runners: hosts/runners.slow-spec.ts.
    if (!name.includes('spec'))
      writeFileSync(join(home, 'src', name), platform === FASTIFY ? onFastify(code) : code);
  }
  run(home, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund');
}

/** The recipes are for the Express adapter, which Nest takes unless told otherwise. */
function onFastify(code: string): string {
  const adapted = code.replace('create(AppModule)', 'create(AppModule, new FastifyAdapter())');
  return `import { FastifyAdapter } from '${FASTIFY}';\n${adapted}`;
}

/** Starts a recipe and waits until it answers. */
async function start(home: string, recipe: string): Promise<URL> {
  const port = await freePort();
  rmSync(join(home, 'data'), { recursive: true, force: true });
  output = '';
  host = spawn(process.execPath, [join('dist', `${recipe}.js`)], {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      PORT: String(port),
      DATABASE_URL: recipe === 'guard' ? postgres.url() : '',
      GARDENER: 'ada',
      NO_COLOR: '1',
    },
  });
  host.stdout?.on('data', (chunk) => (output += String(chunk)));
  host.stderr?.on('data', (chunk) => (output += String(chunk)));
  const url = new URL(`http://127.0.0.1:${port}`);
  for (let attempt = 0; host.exitCode === null && attempt < 300; attempt++) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer) return url;
    await setTimeout(100);
  }
  throw new Error(`the host does not answer:\n${output}`);
}

async function post(url: URL, headers: Record<string, string>): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: PLANT,
  });
  return `${response.status} ${await response.text()}`;
}

function postWithPrintedToken(url: URL): Promise<string> {
  const [, token = ''] = /Bearer ([\w-]+)/.exec(output) ?? [];
  return post(new URL('/plants', url), { authorization: `Bearer ${token}` });
}
