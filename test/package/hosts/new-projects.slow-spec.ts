/** Tests the code of docs/embedding.md in new projects, as Nest generates them today. */
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../../support/folder';
import { findFreePort } from '../../support/free-port';
import { PostgresServer } from '../../support/postgres';
import { TestProcess } from '../../support/test-process';
import { until } from '../../support/until';
import { readInstallCommands, PROJECT, readPrograms, run } from '../packed';
import { errorNumbers } from '../../support/error-bodies';

describe.each([
  [12, 'esm', 'ES modules and Vitest'],
  [12, 'cjs', 'CommonJS and Jest'],
  [11, 'cjs', 'CommonJS and Jest'],
])('a new project of Nest %d with the type %s: %s', (nest, type, _what) => {
  const folder = makeFolder();
  const home = join(folder, 'app');
  let host: TestProcess | undefined;
  let url: URL;
  beforeAll(() => {
    // The page assumes a clone next to the application.
    mkdirSync(join(folder, 'plant-store'));
    symlinkSync(join(PROJECT, 'dist'), join(folder, 'plant-store/dist'));
    // The command that `nest new` runs after it has asked for the type.
    const packages = `--package=@nestjs/schematics@${nest} --package=@angular-devkit/schematics-cli`;
    const create = `schematics @nestjs/schematics:application --name=app --type=${type}`;
    run(folder, 'sh', '-ec', `npm exec --yes ${packages} -- ${create}`);
    run(home, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund');
    run(home, 'sh', '-ec', readInstallCommands());
    for (const [name, code] of readPrograms()) writeFileSync(join(home, 'src', name), code);
    // The main.ts of the project starts app.module.ts, which the page replaces.
    const main = readFileSync(join(home, 'src/main.ts'), 'utf8').replace(
      'create(AppModule)',
      'create(AppModule, { rawBody: true })',
    );
    writeFileSync(join(home, 'src/main.ts'), main);
    writeFileSync(join(home, 'src/main-guard.ts'), main.replace('./app.module', './guard'));
    run(home, 'npm', 'run', 'build');
  });
  afterEach(() => host?.end());
  afterAll(() => {
    removeFolder(folder);
  });

  /** Starts a program of the page, and waits until it responds. */
  async function start(program: string, environment: NodeJS.ProcessEnv = {}): Promise<void> {
    url = new URL(`http://127.0.0.1:${await findFreePort()}`);
    const env = { PATH: process.env.PATH, PORT: url.port, NO_COLOR: '1', ...environment };
    const started = new TestProcess([process.execPath, `dist/${program}.js`], { cwd: home, env });
    host = started;
    await until(() => {
      if (started.child.exitCode !== null) throw new Error(started.stdout + started.stderr);
      return fetch(url).then(Boolean, () => false);
    });
  }

  async function post(headers: Record<string, string>): Promise<string> {
    const response = await fetch(new URL('/plants', url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"id":9007199254740993,"name":"Fern"}',
    });
    return `${response.status} ${await response.text()}`;
  }

  it('compiles all programs, including declarations', () => {
    expect(run(home, 'npx', 'tsc', '--noEmit', '--skipLibCheck', 'false')).toBe('');
  });

  it('passes the documented test and its own', () => {
    expect(run(home, 'sh', '-c', 'npm test 2>&1')).toContain('plants.spec.ts');
  });

  it('creates a plant with the module without options', async () => {
    await start('main');

    const [, token = ''] = (await host?.waitForOutput(/Bearer ([\w-]+)/, 'stderr')) ?? [];
    expect(await post({ authorization: `Bearer ${token}` })).toBe('200 {"name":"Fern"}');
    expect(await post({})).toMatch(new RegExp(`^401 {"error":${errorNumbers.missingCredentials}`));
  });

  it('creates a plant with a guard and PostgreSQL', async () => {
    const postgres = await PostgresServer.start();
    await start('main-guard', { DATABASE_URL: postgres.url(), GARDENER: 'ada' });

    expect(await post({ 'x-gardener': 'ada' })).toBe('200 {"name":"Fern"}');
    expect(await post({ 'x-gardener': 'eve' })).toMatch(/^403 {"message":"Forbidden resource"/);
    expect(await postgres.plants()).toEqual([{ id: 9_007_199_254_740_993n, name: 'Fern' }]);
    await host?.end();
    await postgres.remove();
  });
});
