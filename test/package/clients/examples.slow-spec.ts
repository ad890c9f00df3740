import { basename } from 'node:path';
import { TestApplication, TOKEN } from '../../support/application';
import { describeWith, type Run, run, shell } from '../../support/run';
import { makeUnreliable } from '../../support/unreliable-proxy';
import { ClientProject, example } from './client-project';

/** The programs of docs/clients.md. They need languages and generators of others, so not in npm test. */

/** Not a NewPlant, in three ways. */
const MISTAKES = `import { createPlant } from './plant-store/index.js';
await createPlant({ body: { id: 1n } });
await createPlant({ body: { id: 1, name: 'Fern' } });
await createPlant({ body: { id: 1n, name: 'Fern', tag: null } });
`;

/** Programs that use what the generators make, as it comes. Each prints the answer. */
const AS_IT_COMES = {
  'create-hey-api.ts': `import { client } from './hey-api/client.gen.js';
    import { createPlant } from './hey-api/index.js';
    client.setConfig({ baseUrl: process.env.PLANT_STORE, auth: process.env.TOKEN });
    console.log(await createPlant({ body: { id: 9007199254741003, name: 'Fern' } }));`,
  'transformers.ts': `import { client } from './plant-store/client.gen.js';
    import { createPlant } from './plant-store/index.js';
    client.setConfig({ baseUrl: process.env.PLANT_STORE, auth: process.env.TOKEN });
    console.log(await createPlant({ body: { id: 9007199254741003n, name: 'Fern' } }));`,
  'create-oazapfts.ts': `import { createPlant, defaults } from './oazapfts.js';
    defaults.baseUrl = String(process.env.PLANT_STORE);
    defaults.headers = { Authorization: 'Bearer ' + process.env.TOKEN };
    console.log(await createPlant({ id: 9007199254741003, name: 'Fern' }));`,
};

describe('docs/clients.md', () => {
  const application = TestApplication.use();
  /** With the client of the package, generated ones, and the programs of the page. */
  let project: ClientProject;
  let compiled: Run;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    env = { ...process.env, PLANT_STORE: application.url.origin, TOKEN };
    const sources = {
      'client.ts': example('The client', 'ts'),
      'generated.ts': example('Generated', 'ts'),
      'to-json.ts': example('Generated', 'ts toJSON'),
      'mistakes.ts': MISTAKES,
      ...AS_IT_COMES,
    };
    project = new ClientProject(sources, env);
    for (const command of [
      example('Generated', 'sh'),
      'npx openapi-ts -i "$PLANT_STORE/openapi.json" -o src/hey-api -p @hey-api/client-fetch @hey-api/sdk',
      'npx oazapfts "$PLANT_STORE/openapi.json" src/oazapfts.ts',
    ]) {
      const { code, stdout, stderr } = await project.shell(command);
      if (code !== 0) throw new Error(stdout + stderr);
    }
    compiled = await project.shell('npx tsc -p .');
  });
  afterAll(() => {
    project.remove();
  });

  type Program = (env: NodeJS.ProcessEnv) => Promise<Run>;
  const success = { code: 0, stdout: expect.stringContaining('Fern') as string };
  const fern = { name: 'Fern', tag: 'shade' };

  /** @param repeat the program that sends a creation again, if there is one */
  const testProgram = (create: Program, repeat?: Program): void => {
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

    if (repeat === undefined) return;
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
  const client: Program = (env) => project.run('client.js', env);
  const curl = (language: string): Program => {
    const lines = example('curl', language);
    return (env) => shell(lines, { env });
  };
  const python: Program = (env) =>
    run('python3', [project.write('program.py', example('Python', 'python'))], { env });

  describe('the client', () => {
    testProgram(client, client);
  });
  describe('the generated client', () => {
    testProgram((env) => project.run('generated.js', env));
  });
  describeWith('curl', () => {
    testProgram(curl('sh'), curl('sh retry'));
  });
  describeWith('python3', () => {
    testProgram(python, python);
  });

  it('has a generated client that compiles, and accepts only a NewPlant', () => {
    const errors = [...compiled.stdout.matchAll(/^(.*)\((\d+),\d+\): error TS\d+: (.*)/gm)];

    expect(
      errors.map(([, file = '', line, text]) => `${basename(file)} ${line}: ${text}`).toSorted(),
    ).toEqual([
      "mistakes.ts 2: Type '{ id: bigint; }' is not assignable to type 'NewPlant'.",
      "mistakes.ts 3: Type 'number' is not assignable to type 'bigint'.",
      "mistakes.ts 4: Type 'null' is not assignable to type 'string | undefined'.",
    ]);
  });

  it.each(['create-hey-api.js', 'create-oazapfts.js'])(
    'says that another id is stored by %s',
    async (program) => {
      application.store.removePlants();

      await project.run(program);

      expect(application.store.plants()).toMatchObject([{ id: 9_007_199_254_741_004n }]);
    },
  );

  it('says that hey-api with transformers sends a string', async () => {
    expect((await project.run('transformers.js')).stdout).toContain('40002');
  });
});
