import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dependencies, devDependencies } from '../../package.json';
import { freePort } from '../support/free-port';
import { PostgresServer } from '../support/postgres';
import { TestProcess } from '../support/test-process';
import { until } from '../support/until';
import { compile, configure, recipes, run, usePackages } from './packed';

/**
 * Installs the package as a user would, beside hosts that are not built with our configuration, and
 * runs the recipes of docs/embedding.md in them. It asks the registry, so it is no part of npm test.
 */

const FASTIFY = '@nestjs/platform-fastify';
const EXPRESS = '@nestjs/platform-express';

const packed = usePackages();
let postgres: PostgresServer | undefined;
let host: TestProcess | undefined;
beforeAll(async () => {
  postgres = await PostgresServer.start();
});
afterEach(() => host?.end());
afterAll(() => postgres?.remove());

describe.each([
  ['an ESM host on Fastify, with @nestjs/swagger', 'module', FASTIFY, ['@nestjs/swagger']],
  ['a CommonJS host on Express', 'commonjs', EXPRESS, []],
])('in %s', (_what, type, platform, others) => {
  let home: string;
  beforeAll(() => {
    home = join(packed.folder, type);
    mkdirSync(join(home, 'src'), { recursive: true });
    writeFileSync(join(home, 'package.json'), JSON.stringify(manifest(type, platform, others)));
    configure(home, { rootDir: 'src', outDir: 'dist' });
    for (const [name, code] of recipes()) {
      // The tests of a host run in its runners: hosts/new-projects.slow-spec.ts.
      if (name.includes('spec')) continue;
      writeFileSync(join(home, 'src', name), platform === FASTIFY ? onFastify(code) : code);
    }
    run(home, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund');
  });

  it('type-checks, declarations included', () => {
    expect(compile(home)).toBe('');
  });

  it('creates a plant by the default recipe', async () => {
    const url = await start(home, 'default');

    expect(await postWithPrintedToken(url)).toBe('200 {"name":"Fern"}');
    expect(await post(new URL('/plants', url), {})).toMatch(/^401 {"error":40100/);
  });

  it('finds a plant by the recipe with a controller', async () => {
    const url = await start(home, 'stored-plants');
    await postWithPrintedToken(url);
    const find = async (id: string) => (await fetch(new URL(`/stored-plants/${id}`, url))).text();

    expect(await find('9007199254740993')).toBe('{"id":"9007199254740993","name":"Fern"}');
    expect(JSON.parse(await find('abc'))).toMatchObject({ statusCode: 404 });
  });

  it('creates a plant by the recipe with a guard and PostgreSQL', async () => {
    await postgres?.execute('DROP TABLE IF EXISTS plants, plants_migrations');
    const DATABASE_URL = postgres?.url();
    const url = await start(home, 'guard', { DATABASE_URL, GARDENER: 'ada' });
    const plants = new URL('/greenhouse/plants', url);

    const health = await fetch(new URL('/health', url));
    expect(await health.text()).toBe('ready');
    expect(await post(plants, { 'x-gardener': 'ada' })).toBe('200 {"name":"Fern"}');
    expect(await post(plants, { 'x-gardener': 'eve' })).toMatch(/^403 {"error":40300/);
    expect(await postgres?.plants()).toEqual([{ id: 9_007_199_254_740_993n, name: 'Fern' }]);
  });
});

/** The package.json of a small host. */
function manifest(type: string, platform: string, others: readonly string[]): object {
  const pinned = [
    ...['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs', '@types/node'],
    ...['class-transformer', 'class-validator', 'pg', ...others],
  ];
  const versions: Partial<Record<string, string>> = { ...dependencies, ...devDependencies };
  const installed = {
    '@plant-store/nestjs': `file:${packed.module}`,
    ...{ [platform]: '^12.0.0', '@nestjs/config': '^12.0.0' },
    ...Object.fromEntries(pinned.map((name) => [name, versions[name]])),
  };
  return { type, dependencies: installed };
}

/** The recipes are for the Express adapter, which Nest takes unless told otherwise. */
function onFastify(code: string): string {
  const adapted = code.replace('create(AppModule)', 'create(AppModule, new FastifyAdapter())');
  return `import { FastifyAdapter } from '${FASTIFY}';\n${adapted}`;
}

/** Starts a recipe and waits until it answers. */
async function start(
  home: string,
  recipe: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<URL> {
  const url = new URL(`http://127.0.0.1:${await freePort()}`);
  rmSync(join(home, 'data'), { recursive: true, force: true });
  const env = { PATH: process.env.PATH, PORT: url.port, NO_COLOR: '1', ...environment };
  const started = new TestProcess([process.execPath, `dist/${recipe}.js`], { cwd: home, env });
  host = started;
  await until(async () => {
    if (started.child.exitCode !== null) throw new Error(started.stdout + started.stderr);
    return fetch(url).then(
      () => true,
      () => false,
    );
  });
  return url;
}

async function post(url: URL, headers: Record<string, string>): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{"id":9007199254740993,"name":"Fern"}',
  });
  return `${response.status} ${await response.text()}`;
}

/** With the token that the host prints once it listens. */
async function postWithPrintedToken(url: URL): Promise<string> {
  let token: string | undefined;
  await until(() => {
    [, token] = /Bearer ([\w-]+)/.exec(`${host?.stdout}${host?.stderr}`) ?? [];
    return token !== undefined;
  });
  return post(new URL('/plants', url), { authorization: `Bearer ${token}` });
}
