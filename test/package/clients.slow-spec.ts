import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TestApplication, TOKEN } from '../support/application';
import { makeFolder, removeFolder } from '../support/folder';
import { describeWith, type Run, run, shell } from '../support/run';
import { makeUnreliable } from '../support/unreliable-proxy';
import { compile, configure, example, PROJECT } from './packed';

/** The programs of docs/clients.md. They need languages of others, so not in npm test. */

describe('docs/clients.md', () => {
  const application = TestApplication.use();
  /** An ES module with the client of the package. */
  const home = makeFolder();
  const write = (name: string, content: string): string => {
    const file = join(home, name);
    writeFileSync(file, content);
    return file;
  };
  let env: NodeJS.ProcessEnv;
  beforeAll(() => {
    env = { ...process.env, PLANT_STORE: application.url.origin, TOKEN };
    mkdirSync(join(home, 'node_modules/@plant-store'), { recursive: true });
    symlinkSync(join(PROJECT, 'dist/client'), join(home, 'node_modules/@plant-store/client'));
    write('package.json', '{"type":"module"}');
    write('client.ts', example('The client', 'ts'));
    configure(home, { typeRoots: [join(PROJECT, 'node_modules/@types')] });
    compile(home);
  });
  afterAll(() => {
    removeFolder(home);
  });

  type Program = (env: NodeJS.ProcessEnv) => Promise<Run>;
  const client: Program = (env) => run(process.execPath, [join(home, 'client.js')], { env });
  const curl = (language: string): Program => {
    const lines = example('curl', language);
    return (env) => shell(lines, { env });
  };
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

    it('tells why it failed', async () => {
      const { code, stdout, stderr } = await create({ ...env, TOKEN: 'bad' });

      expect(code).not.toBe(0);
      expect(stdout + stderr).toMatch(
        /Invalid bearer token[^]*40101|40101[^]*Invalid bearer token/,
      );
    });

    it('repeats a creation until it succeeds', async () => {
      application.store.removePlants();
      const proxy = await makeUnreliable(application.url.origin);

      expect(await repeat({ ...env, PLANT_STORE: proxy.origin })).toMatchObject(success);

      expect(proxy.seen.map(({ what }) => what)).toEqual([503, 'answer lost', 200]);
      expect(new Set(proxy.seen.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
      // Retry-After said two seconds.
      expect(proxy.pauseAfterRefusal).toBeGreaterThan(1900);
      expect(application.store.plants()).toMatchObject([fern]);
      await proxy.stop();
    });
  };
  describe('the client', () => {
    testProgram(client, client);
  });
  describeWith('curl', () => {
    testProgram(curl('sh'), curl('sh retry'));
  });
  describeWith('python3', () => {
    testProgram(python, python);
  });
});
