import { basename } from 'node:path';
import type { Plant } from '../../../src/plants';
import type { TestApplication } from '../../support/application';
import { ClientProject, example, startForClients } from '../../support/client-project';
import { makeUnreliable, type UnreliableProxy } from '../../support/unreliable-proxy';
import { python, type Run, shell } from '../../support/run';

/** The programs of docs/clients.md. They need languages and generators of others, so not in npm test. */

jest.setTimeout(120_000);

/** Not a NewPlant, in three ways. */
const MISTAKES = `import { createPlant } from './plant-store/index.js';
await createPlant({ body: { id: 1n } });
await createPlant({ body: { id: 1, name: 'Fern' } });
await createPlant({ body: { id: 1n, name: 'Fern', tag: null } });
`;

describe('docs/clients.md', () => {
  const fern: Plant = { id: 9_007_199_254_740_993n, name: 'Fern', tag: 'shade' };
  let application: TestApplication;
  /** With a generated client and the programs of the page. */
  let project: ClientProject;
  let compiled: Run;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    ({ application, env } = await startForClients());
    const sources = {
      'create.ts': example('TypeScript', 'ts'),
      'to-json.ts': example('TypeScript', 'ts toJSON'),
      'retry.ts': example('TypeScript', 'ts retry'),
      'mistakes.ts': MISTAKES,
    };
    project = new ClientProject(sources, env);
    await project.generate(example('TypeScript', 'sh'));
    compiled = await project.compile();
  });
  beforeEach(() => {
    application.store.removePlants();
  });
  afterAll(async () => {
    await application.stop();
    project.remove();
  });

  const runPython = (): Promise<Run> =>
    python(project.write('program.py', example('Python', 'python')), env);

  it.each([
    ['curl', () => shell(example('curl', 'sh'), { env })],
    ['Python', runPython],
    ['TypeScript with a generated client', () => project.run('create.js', env)],
  ])(
    'has a program that creates a plant, and tells when it is there already: %s',
    async (_name, create) => {
      const first = await create();

      expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining('Fern') as string });
      expect(application.store.plants()).toEqual([fern]);

      const second = await create();

      expect(second.code).not.toBe(0);
      expect(second.stdout + second.stderr).toContain('A plant with this id exists already.');
      expect(second.stdout + second.stderr).toContain('40003');
    },
  );

  describe('has a program that repeats a creation until it succeeds:', () => {
    let proxy: UnreliableProxy;
    beforeEach(async () => {
      proxy = await makeUnreliable(env.PLANT_STORE ?? '');
      env = { ...env, PLANT_STORE: proxy.origin };
    });
    afterEach(async () => {
      env = { ...env, PLANT_STORE: proxy.target };
      await proxy.stop();
    });

    it.each([
      ['curl', () => shell(example('curl', 'sh retry'), { env })],
      ['Python', runPython],
      ['TypeScript', () => project.run('retry.js', env)],
    ])('%s', async (_name, create) => {
      const outcome = await create();

      expect(outcome).toMatchObject({ code: 0, stdout: expect.stringContaining('Fern') as string });
      expect(proxy.seen.map(({ what }) => what)).toEqual(['unavailable', 'answer lost', 'passed']);
      expect(new Set(proxy.seen.map(({ key }) => key)).size).toBe(1);
      expect(proxy.lastHeaders['idempotent-replayed']).toBe('true');
      // Retry-After said two seconds.
      expect(proxy.pauseAfterRefusal).toBeGreaterThan(1900);
      expect(application.store.plants()).toEqual([fern]);
    });
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
});
