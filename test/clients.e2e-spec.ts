import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Plant } from '../src/plants';
import { TestApplication, TOKEN } from './support/application';
import { makeFolder, removeFolder } from './support/folder';
import { makeUnreliable, type UnreliableProxy } from './support/unreliable-proxy';
import { python, type Run, run, shell } from './support/run';

jest.setTimeout(120_000);

const ROOT = join(__dirname, '..');
const MARKDOWN = readFileSync(join(ROOT, 'docs/clients.md'), 'utf8');

/** The example in a language, under a heading. */
function example(heading: string, language: string): string {
  const [section = ''] = MARKDOWN.split(/^## /m).filter((text) => text.startsWith(heading));
  const [, code] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(section) ?? [];
  if (code === undefined) throw new Error(`No ${language} under "${heading}".`);
  return code;
}

describe('docs/clients.md', () => {
  const fern: Plant = { id: 9_007_199_254_740_993n, name: 'Fern', tag: 'shade' };
  let application: TestApplication;
  let folder: string;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    application = await TestApplication.start();
    const { origin } = await application.listen();
    env = { ...process.env, PLANT_STORE: origin, TOKEN };
  });
  beforeEach(() => {
    application.store.removePlants();
    folder = makeFolder();
  });
  afterEach(() => {
    removeFolder(folder);
  });
  afterAll(() => application.stop());

  /** Runs a program that creates the plant twice: the second time it is to tell what is wrong. */
  async function expectToCreate(create: () => Promise<Run>): Promise<void> {
    const first = await create();

    expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining('Fern') as string });
    expect(application.store.plants()).toEqual([fern]);

    const second = await create();

    expect(second.code).not.toBe(0);
    expect(second.stdout + second.stderr).toContain('A plant with this id exists already.');
    expect(second.stdout + second.stderr).toContain('40003');
  }

  it('has a curl line that creates a plant', async () => {
    await expectToCreate(() => shell(example('curl', 'sh'), { env }));
  });

  it('has a Python program that creates a plant', async () => {
    const file = join(folder, 'create.py');
    writeFileSync(file, example('Python', 'python'));

    await expectToCreate(() => python(file, env));
  });

  it('has a TypeScript program that creates a plant with a generated client', async () => {
    makeProject({ 'create.ts': example('TypeScript', 'ts') });

    expect(await shell(example('TypeScript', 'sh'), { cwd: folder, env })).toMatchObject({
      code: 0,
    });
    expect(await compile()).toMatchObject({ code: 0, stdout: '' });

    await expectToCreate(() => run(process.execPath, [join(folder, 'dist/create.js')], { env }));
  });

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

    const programs: [string, () => Promise<Run>][] = [
      ['curl', () => shell(example('curl', 'sh retry'), { env })],
      [
        'Python',
        () => {
          const file = join(folder, 'create.py');
          writeFileSync(file, example('Python', 'python retry'));
          return python(file, env);
        },
      ],
      [
        'TypeScript',
        async () => {
          makeProject({ 'create.ts': example('TypeScript', 'ts retry') });
          expect(await compile()).toMatchObject({ code: 0, stdout: '' });
          return run(process.execPath, [join(folder, 'dist/create.js')], { env });
        },
      ],
    ];

    it.each(programs)('%s', async (_name, create) => {
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

  it('has a generated client that accepts only a NewPlant', async () => {
    makeProject({
      'create.ts': `import { createPlant } from './plant-store/index.js';
        await createPlant({ body: { id: 1n, name: 'Fern', tag: 'shade' } });
        await createPlant({ body: { id: 1n } });
        await createPlant({ body: { id: 1, name: 'Fern' } });
        await createPlant({ body: { id: 1n, name: 'Fern', tag: null } });
      `,
    });
    await shell(example('TypeScript', 'sh'), { cwd: folder, env });

    const { stdout } = await compile();

    const errors = [...stdout.matchAll(/create\.ts\((\d+),\d+\): error TS\d+: (.*)/g)];
    expect(errors.map(([, line, message]) => `${line}: ${message}`)).toEqual([
      "3: Type '{ id: bigint; }' is not assignable to type 'NewPlant'.",
      "4: Type 'number' is not assignable to type 'bigint'.",
      "5: Type 'null' is not assignable to type 'string | undefined'.",
    ]);
  });

  /** A project of ES modules in the folder, with our node_modules. */
  function makeProject(sources: Record<string, string>): void {
    const files = {
      'package.json': { type: 'module' },
      'tsconfig.json': {
        compilerOptions: {
          module: 'nodenext',
          target: 'es2024',
          lib: ['es2024', 'dom', 'dom.iterable'],
          types: ['node'],
          strict: true,
          rootDir: 'src',
          outDir: 'dist',
        },
      },
    };
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    mkdirSync(join(folder, 'src'));
    for (const [name, content] of Object.entries(files)) {
      writeFileSync(join(folder, name), JSON.stringify(content));
    }
    for (const [name, content] of Object.entries(sources)) {
      writeFileSync(join(folder, 'src', name), content);
    }
  }

  function compile(): Promise<Run> {
    return run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder]);
  }
});
