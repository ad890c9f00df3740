/** Tests the programs of docs/clients.md and the client package. `npm test` does not run them: they need the registry and other languages. */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { describeWith, type RunResult, run, shell } from '../support/run';
import { startUnreliableProxy } from '../support/unreliable-proxy';
import { errorNumbers } from '../support/error-bodies';
import { engines } from '../../src/client/package.json';
import {
  compile,
  configureTypeScript,
  readExample,
  installNode,
  PROJECT,
  run as runSync,
  usePackages,
} from './packed';

describe('docs/clients.md', () => {
  const application = TestApplication.use();
  const packed = usePackages();
  /** An ES module project in which the client is installed. */
  const home = join(packed.folder, 'client');
  const write = (name: string, content: string): string => {
    const file = join(home, name);
    writeFileSync(file, content);
    return file;
  };
  let env: NodeJS.ProcessEnv;
  beforeAll(() => {
    env = { ...process.env, PLANT_STORE: application.url.origin, TOKEN };
    mkdirSync(home);
    write('package.json', '{"type":"module"}');
    runSync(home, 'npm', 'install', '--prefer-offline', '--no-audit', packed.client);
    write('client.ts', readExample('TypeScript client', 'ts'));
    write('errors.ts', readExample('TypeScript client', 'ts errors'));
    write(
      'common.cts',
      "import { PlantStoreClient } from '@plant-store/client';\nnew PlantStoreClient({ url: 'http://h', token: 't' });",
    );
    write('common.test.cjs', "test('loads the client', () => void require('./common.cjs'));");
    configureTypeScript(home, { typeRoots: [join(PROJECT, 'node_modules/@types')] });
    compile(home);
  });

  type Program = (env: NodeJS.ProcessEnv) => Promise<RunResult>;
  /** The oldest supported version of each Node.js line. */
  const versions = engines.node.match(/[\d.]+/g) ?? [];
  const [oldest = ''] = versions;
  const client: Program = (env) => run(installNode(oldest), [join(home, 'client.js')], { env });
  const curl =
    (language: string): Program =>
    (env) =>
      shell(readExample('curl', language), { env });
  const python: Program = (env) =>
    run('python3', [write('program.py', readExample('Python', 'python'))], { env });
  const success = { code: 0, stdout: expect.stringContaining('Fern') as string };
  const fern = { name: 'Fern', tag: 'shade' };

  /** @param repeat the program that retries a create request */
  const testProgram = (create: Program, repeat: Program): void => {
    it('creates a plant with an id that no other program has used', async () => {
      const others = application.store.plants().length;

      expect(await create(env)).toMatchObject(success);

      expect(application.store.plants()).toMatchObject(Array(others + 1).fill(fern));
    });

    it('reports the error number and message when the token is invalid', async () => {
      const { code, stdout, stderr } = await create({ ...env, TOKEN: 'bad' });

      expect(code).not.toBe(0);
      expect(stdout + stderr).toMatch(
        new RegExp(
          `Invalid bearer token[^]*${errorNumbers.invalidToken}|${errorNumbers.invalidToken}[^]*Invalid bearer token`,
        ),
      );
    });

    it('retries a request until it succeeds', async () => {
      application.store.removePlants();
      const proxy = await startUnreliableProxy(application.url.origin);

      expect(await repeat({ ...env, PLANT_STORE: proxy.origin })).toMatchObject(success);

      expect(proxy.seen.map(({ what }) => what)).toEqual([503, 'response lost', 200]);
      expect(new Set(proxy.seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
      // Retry-After was two seconds. On a busy machine, the pause can only be longer.
      const [rejectedAt = NaN, retriedAt = NaN] = proxy.seen.map(({ at }) => at);
      expect(retriedAt - rejectedAt).toBeGreaterThan(1900);
      expect(application.store.plants()).toMatchObject([fern]);
      await proxy.stop();
    });
  };
  describe('the client on the oldest Node.js', () => {
    testProgram(client, client);

    it('handles errors as the page shows', async () => {
      const program = join(home, 'errors.js');
      const runWith = (change: NodeJS.ProcessEnv) =>
        run(installNode(oldest), [program], { env: { ...env, ...change } });
      const stored = await runWith({});
      const rejected = await runWith({ TOKEN: 'bad' });
      const elsewhere = await runWith({ PLANT_STORE: `${application.url.origin}/elsewhere` });

      expect(stored).toMatchObject({ code: 0, stdout: 'The plant is stored.\n' });
      expect(rejected).toMatchObject({
        code: 1,
        stderr: `Nothing was stored. ${errorBodies.invalidToken.message}\n`,
      });
      expect(elsewhere).toMatchObject({
        code: 1,
        stderr: `Nothing was stored. ${errorBodies.notFound.message}\n`,
      });
    });

    it.each(versions)('is loaded by require on Node.js %s, without a warning', async (version) => {
      const outcome = await run(installNode(version), [join(home, 'common.cjs')]);

      expect(outcome).toEqual({ code: 0, stdout: '', stderr: '' });
    });

    it('is loaded by require in a program that a bundler has built', async () => {
      // There, the program finds no installed packages.
      const bundled = join(packed.folder, 'bundled.cjs');
      const bundle = ['--bundle', '--platform=node', `--outfile=${bundled}`, 'common.cjs'];
      runSync(home, 'npm', 'exec', '--yes', '--package=esbuild@0.28.2', '--', 'esbuild', ...bundle);

      const outcome = await run(installNode(oldest), [bundled]);

      expect(outcome).toEqual({ code: 0, stdout: '', stderr: '' });
    });

    it('is loaded by require in Jest, as the page says', async () => {
      const jest = [join(PROJECT, 'node_modules/jest/bin/jest.js'), '--rootDir', home];
      const runJest = (options: string) =>
        run(process.execPath, jest, { cwd: home, env: { ...env, NODE_OPTIONS: options } });

      expect(await runJest('--experimental-vm-modules')).toMatchObject({ code: 0 });
      // The option becomes unnecessary when this succeeds.
      expect(await runJest('')).toMatchObject({ code: 1 });
    });

    it('is installed without other packages', () => {
      const installed = readdirSync(join(home, 'node_modules'));

      expect(installed).toEqual(['.package-lock.json', '@plant-store']);
    });
  });
  describeWith('curl', () => {
    testProgram(curl('sh'), curl('sh retry'));
  });
  describeWith('python3', () => {
    testProgram(python, python);
  });
});
