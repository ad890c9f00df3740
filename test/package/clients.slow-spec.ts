import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TestApplication, TOKEN } from '../support/application';
import { errorBodies } from '../support/error-bodies';
import { describeWith, type Run, run, shell } from '../support/run';
import { makeUnreliable } from '../support/unreliable-proxy';
import { errorNumbers } from '../support/error-bodies';
import {
  compile,
  configure,
  example,
  nodeOf,
  PROJECT,
  run as runSync,
  usePackages,
} from './packed';

/** The programs of docs/clients.md, and the package of the client. They need the registry and other languages, so not in npm test. */

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

describe('docs/clients.md', () => {
  const application = TestApplication.use();
  const packed = usePackages();
  /** An ES module with the client installed. */
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
    write('client.ts', example('TypeScript client', 'ts'));
    write('errors.ts', example('TypeScript client', 'ts errors'));
    configure(home, { typeRoots: [join(PROJECT, 'node_modules/@types')] });
    compile(home);
  });

  type Program = (env: NodeJS.ProcessEnv) => Promise<Run>;
  const client: Program = (env) => run(nodeOf('20.0.0'), [join(home, 'client.js')], { env });
  const curl =
    (language: string): Program =>
    (env) =>
      shell(example('curl', language), { env });
  const python: Program = (env) =>
    run('python3', [write('program.py', example('Python', 'python'))], { env });
  const success = { code: 0, stdout: expect.stringContaining('Fern') as string };
  const fern = { name: 'Fern', tag: 'shade' };

  /** @param repeat the program that sends a creation again */
  const testProgram = (create: Program, repeat: Program): void => {
    it('creates a plant, in a store that has seen those of the others', async () => {
      const others = application.store.plants().length;

      expect(await create(env)).toMatchObject(success);

      expect(application.store.plants()).toMatchObject(Array(others + 1).fill(fern));
    });

    it('reports why it failed', async () => {
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
      const proxy = await makeUnreliable(application.url.origin);

      expect(await repeat({ ...env, PLANT_STORE: proxy.origin })).toMatchObject(success);

      expect(proxy.seen.map(({ what }) => what)).toEqual([503, 'answer lost', 200]);
      expect(new Set(proxy.seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
      // Retry-After said two seconds. A busy machine only makes the pause longer.
      expect(proxy.pauseAfterRefusal).toBeGreaterThan(1900);
      expect(application.store.plants()).toMatchObject([fern]);
      await proxy.stop();
    });
  };
  describe('the client on Node.js 20', () => {
    testProgram(client, client);

    it('handles errors as the page shows', async () => {
      const program = join(home, 'errors.js');
      const [stored, rejected, elsewhere] = [
        await run(nodeOf('20.0.0'), [program], { env }),
        await run(nodeOf('20.0.0'), [program], { env: { ...env, TOKEN: 'bad' } }),
        await run(nodeOf('20.0.0'), [program], {
          env: { ...env, PLANT_STORE: `${application.url.origin}/elsewhere` },
        }),
      ];

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

    it('is installed without other packages', () => {
      const installed = readdirSync(join(home, 'node_modules'));

      expect(installed).toEqual(['.package-lock.json', '@plant-store']);
    });

    // attw tries newer ones.
    it('has types, also for what TypeScript 6 still has of Node.js 10', () => {
      const folder = join(home, 'types');
      mkdirSync(folder);
      write('types/consumer.ts', CONSUMER);
      const resolution = { moduleResolution: 'node', ignoreDeprecations: '6.0' };
      const lib = ['es2022', 'dom'];
      configure(folder, { types: [], lib, noEmit: true, module: 'es2022', ...resolution });

      expect(compile(folder)).toBe('');
    });
  });
  describeWith('curl', () => {
    testProgram(curl('sh'), curl('sh retry'));
  });
  describeWith('python3', () => {
    testProgram(python, python);
  });
});
