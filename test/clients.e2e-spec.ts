import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Plant } from '../src/plants';
import { TestApplication, TOKEN } from './support/application';
import { makeFolder, removeFolder } from './support/folder';
import { makeUnreliable, type UnreliableProxy } from './support/unreliable-proxy';
import { python, type Run, run, shell } from './support/run';

jest.setTimeout(120_000);

const ROOT = join(__dirname, '..');
const MODULES = join(ROOT, 'node_modules');
const MARKDOWN = readFileSync(join(ROOT, 'docs/clients.md'), 'utf8');

/** The example in a language, under a heading. */
function example(heading: string, language: string): string {
  const [section = ''] = MARKDOWN.split(/^## /m).filter((text) => text.startsWith(heading));
  const [, code] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(section) ?? [];
  if (code === undefined) throw new Error(`No ${language} under "${heading}".`);
  return code;
}

/** Programs that use what the generators make, as it comes. Each prints the answer. */
const AS_IT_COMES = {
  'hey-api.ts': `import { client } from './hey-api/client.gen.js';
    import { createPlant } from './hey-api/index.js';
    client.setConfig({ baseUrl: process.env.PLANT_STORE, auth: process.env.TOKEN });
    console.log(await createPlant({ body: { id: 9007199254741003, name: 'Fern' } }));`,
  'hey-api-transformers.ts': `import { client } from './plant-store/client.gen.js';
    import { createPlant } from './plant-store/index.js';
    client.setConfig({ baseUrl: process.env.PLANT_STORE, auth: process.env.TOKEN });
    console.log(await createPlant({ body: { id: 9007199254741003n, name: 'Fern' } }));`,
  'openapi-typescript.ts': `import createClient from 'openapi-fetch';
    import type { paths } from './schema-as-it-comes.js';
    const client = createClient<paths>({
      baseUrl: process.env.PLANT_STORE,
      headers: { Authorization: 'Bearer ' + process.env.TOKEN },
    });
    const body = { id: 9007199254741003, name: 'Fern' };
    console.log(await client.POST('/plants', { body }));`,
  'oazapfts-number.ts': `import { createPlant, defaults } from './oazapfts-as-it-comes.js';
    defaults.baseUrl = String(process.env.PLANT_STORE);
    defaults.headers = { Authorization: 'Bearer ' + process.env.TOKEN };
    console.log(await createPlant({ id: 9007199254741003, name: 'Fern' }));`,
};

/** What a bigint does in a client that calls JSON.stringify. */
const CREATE_WITH_OAZAPFTS = `import { createPlant, defaults } from './oazapfts.js';
  defaults.baseUrl = String(process.env.PLANT_STORE);
  defaults.headers = { Authorization: 'Bearer ' + process.env.TOKEN };
  console.log(await createPlant({ id: 9007199254741003n, name: 'Fern' }));`;

/** Not a NewPlant, in three ways. */
const MISTAKES = `import { createPlant } from './plant-store/index.js';
await createPlant({ body: { id: 1n } });
await createPlant({ body: { id: 1, name: 'Fern' } });
await createPlant({ body: { id: 1n, name: 'Fern', tag: null } });
`;

describe('docs/clients.md', () => {
  const fern: Plant = { id: 9_007_199_254_740_993n, name: 'Fern', tag: 'shade' };
  let application: TestApplication;
  /** A project of TypeScript with a client of each generator and every program, compiled. */
  let project: string;
  let compiled: Run;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    application = await TestApplication.start();
    const { origin } = await application.listen();
    env = { ...process.env, PLANT_STORE: origin, TOKEN };
    project = makeProject({
      'create.ts': example('TypeScript', 'ts'),
      'retry.ts': example('TypeScript', 'ts retry'),
      'openapi-fetch.ts': example('TypeScript', 'ts openapi-fetch'),
      'to-json.ts': `${example('TypeScript', 'ts toJSON')}export {};`,
      'oazapfts-bigint.ts': CREATE_WITH_OAZAPFTS,
      'oazapfts-to-json.ts': `import './to-json.js';\n${CREATE_WITH_OAZAPFTS}`,
      'mistakes.ts': MISTAKES,
      ...AS_IT_COMES,
    });
    writeFileSync(join(project, 'generate.js'), example('TypeScript', 'js generate'));
    await Promise.all(
      [
        example('TypeScript', 'sh'),
        example('TypeScript', 'sh oazapfts'),
        'node generate.js',
        'npx openapi-ts -i "$PLANT_STORE/openapi.json" -o src/hey-api -p @hey-api/client-fetch @hey-api/sdk',
        'npx openapi-typescript "$PLANT_STORE/openapi.json" -o src/schema-as-it-comes.ts',
        'npx oazapfts "$PLANT_STORE/openapi.json" src/oazapfts-as-it-comes.ts',
      ].map(generate),
    );
    compiled = await run(process.execPath, [join(MODULES, 'typescript/bin/tsc'), '-p', project]);
  });
  beforeEach(() => {
    application.store.removePlants();
  });
  afterAll(async () => {
    await application.stop();
    removeFolder(project);
  });

  const node = (program: string): Promise<Run> =>
    run(process.execPath, [join(project, 'dist', program)], { env });
  const pythonOf = (language: string): Promise<Run> => {
    const file = join(project, 'program.py');
    writeFileSync(file, example('Python', language));
    return python(file, env);
  };

  it.each([
    ['curl', () => shell(example('curl', 'sh'), { env })],
    ['Python', () => pythonOf('python')],
    ['TypeScript with a generated client', () => node('create.js')],
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
      ['Python', () => pythonOf('python retry')],
      ['TypeScript', () => node('retry.js')],
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

  it('has generated clients that compile, and accept only a NewPlant', () => {
    const errors = [...compiled.stdout.matchAll(/^(.*)\((\d+),\d+\): error TS\d+: (.*)/gm)];

    expect(
      errors.map(([, file = '', line, text]) => `${basename(file)} ${line}: ${text}`).toSorted(),
    ).toEqual([
      "mistakes.ts 2: Type '{ id: bigint; }' is not assignable to type 'NewPlant'.",
      "mistakes.ts 3: Type 'number' is not assignable to type 'bigint'.",
      "mistakes.ts 4: Type 'null' is not assignable to type 'string | undefined'.",
    ]);
  });

  describe('says what generators make of an int64:', () => {
    const plantsAfter = async (program: string): Promise<bigint[]> => {
      await node(program);
      return application.store.plants().map(({ id }) => id);
    };

    it.each(['hey-api.js', 'openapi-typescript.js', 'oazapfts-number.js'])(
      'another id is stored by %s',
      async (program) => {
        expect(await plantsAfter(program)).toEqual([9_007_199_254_741_004n]);
      },
    );

    it('a string is sent by hey-api with transformers', async () => {
      const { stdout } = await node('hey-api-transformers.js');

      expect(stdout).toContain('40002');
      expect(application.store.plants()).toEqual([]);
    });

    it('a bigint that JSON.stringify gets throws', async () => {
      const { code, stderr } = await node('oazapfts-bigint.js');

      expect(code).toBe(1);
      expect(stderr).toContain('TypeError: Do not know how to serialize');
      expect(application.store.plants()).toEqual([]);
    });

    it.each(['openapi-fetch.js', 'oazapfts-to-json.js'])(
      'the exact id is stored by %s, with the remedy',
      async (program) => {
        expect(await plantsAfter(program)).toEqual([9_007_199_254_741_003n]);
      },
    );
  });

  async function generate(command: string): Promise<void> {
    const { code, stderr, stdout } = await shell(command, { cwd: project, env });
    if (code !== 0) throw new Error(`${command}: ${stderr}${stdout}`);
  }
});

/** Makes a project of ES modules with our node_modules. */
function makeProject(sources: Record<string, string>): string {
  const folder = makeFolder();
  const files = {
    'package.json': { type: 'module' },
    'tsconfig.json': {
      compilerOptions: {
        module: 'nodenext',
        target: 'es2024',
        lib: ['es2024', 'dom', 'dom.iterable'],
        types: ['node'],
        strict: true,
        skipLibCheck: true,
        rootDir: 'src',
        outDir: 'dist',
      },
    },
  };
  symlinkSync(MODULES, join(folder, 'node_modules'));
  mkdirSync(join(folder, 'src'));
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(folder, name), JSON.stringify(content));
  }
  for (const [name, content] of Object.entries(sources)) {
    writeFileSync(join(folder, 'src', name), content);
  }
  return folder;
}
