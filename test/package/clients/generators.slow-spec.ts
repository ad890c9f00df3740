import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { TestApplication, TOKEN } from '../../support/application';
import { makeFolder, removeFolder } from '../../support/folder';
import { type Run, shell } from '../../support/run';
import { example } from '../packed';

/** The generated client of docs/clients.md, made by the page's own lines in a new folder, and others. */

/** Not a NewPlant, in three ways. */
const MISTAKES = `import { createPlant } from './plant-store/index.js';
await createPlant({ body: { id: 1n } });
await createPlant({ body: { id: 1, name: 'Fern' } });
await createPlant({ body: { id: 1n, name: 'Fern', tag: null } });
`;

/** Programs that use what the generators make, as it comes. Each prints the answer. */
const AS_IT_COMES = {
  'create-oazapfts.ts': `import { createPlant, defaults } from './oazapfts.js';
    defaults.baseUrl = String(process.env.PLANT_STORE);
    defaults.headers = { Authorization: 'Bearer ' + process.env.TOKEN };
    console.log(await createPlant({ id: 9007199254741003, name: 'Fern' }));`,
  'create-orval.ts': `import './to-json.js';
    import { createPlant } from './orval.js';
    const headers = { Authorization: 'Bearer ' + process.env.TOKEN };
    console.log(await createPlant({ id: 9007199254741003n, name: 'Fern' }, { headers }));`,
};

const GENERATORS = `npm i -D oazapfts @oazapfts/runtime orval
npx oazapfts "$PLANT_STORE/openapi.json" src/oazapfts.ts
npx orval --config orval.config.mjs
`;
const ORVAL = `export default { plants: {
  input: process.env.PLANT_STORE + '/openapi.json',
  output: { target: 'src/orval.ts', client: 'fetch', baseUrl: process.env.PLANT_STORE, override: { useBigInt: true } },
} };`;

describe('generators of clients', () => {
  const application = TestApplication.use();
  const folder = makeFolder();
  let env: NodeJS.ProcessEnv;
  let compiled: Run;
  beforeAll(async () => {
    env = { ...process.env, PLANT_STORE: application.url.origin, TOKEN };
    writeFileSync(join(folder, 'orval.config.mjs'), ORVAL);
    for (const lines of [example('Generated', 'sh'), GENERATORS]) {
      const { code, stdout, stderr } = await shell(`set -e\n${lines}`, { cwd: folder, env });
      if (code !== 0) throw new Error(stdout + stderr);
    }
    const sources = {
      'generated.ts': example('Generated', 'ts'),
      'to-json.ts': example('Generated', 'ts toJSON'),
      'mistakes.ts': MISTAKES,
      ...AS_IT_COMES,
    };
    for (const [name, code] of Object.entries(sources))
      writeFileSync(join(folder, 'src', name), code);
    compiled = await shell('npx tsc', { cwd: folder, env });
  });
  beforeEach(() => {
    application.store.removePlants();
  });
  afterAll(() => {
    removeFolder(folder);
  });

  const create = (program: string, token = TOKEN) =>
    shell(`node src/${program}.js`, { cwd: folder, env: { ...env, TOKEN: token } });

  it('make by the lines of the page a client that creates a plant', async () => {
    expect(await create('generated')).toMatchObject({ code: 0, stdout: 'Fern\n' });

    expect(application.store.plants()).toMatchObject([{ name: 'Fern', tag: 'shade' }]);
  });

  it('make a client that tells why it failed', async () => {
    const { code, stderr } = await create('generated', 'bad');

    expect(code).not.toBe(0);
    expect(stderr).toMatch(/40101: Invalid bearer token/);
  });

  it('make a client that compiles, and accepts only a NewPlant', () => {
    const errors = [...compiled.stdout.matchAll(/^(.*)\((\d+),\d+\): error TS\d+: (.*)/gm)];

    expect(
      errors.map(([, file = '', line, text]) => `${basename(file)} ${line}: ${text}`).toSorted(),
    ).toEqual([
      "mistakes.ts 2: Type '{ id: bigint; }' is not assignable to type 'NewPlant'.",
      "mistakes.ts 3: Type 'number' is not assignable to type 'bigint'.",
      "mistakes.ts 4: Type 'null' is not assignable to type 'string | undefined'.",
    ]);
  });

  it.each([
    ['the id that was sent by orval with useBigInt', 'create-orval', 9_007_199_254_741_003n],
    ['another id by oazapfts', 'create-oazapfts', 9_007_199_254_741_004n],
  ])('store %s', async (_what, program, id) => {
    await create(program);

    expect(application.store.plants()).toMatchObject([{ id }]);
  });
});
