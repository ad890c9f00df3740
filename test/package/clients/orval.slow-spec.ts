import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestApplication } from '../../support/application';
import { example, startForClients } from '../../support/client-project';
import { makeFolder, removeFolder } from '../../support/folder';
import { run, type Run, shell } from '../../support/run';

/**
 * The generator of docs/clients.md that is too large to come with the other dependencies of the tests.
 * It asks the registry, so it is no part of npm test.
 */

const CONFIGURATION = `export default {
  plants: {
    input: process.env.PLANT_STORE + '/openapi.json',
    output: {
      target: 'orval.ts',
      client: 'fetch',
      baseUrl: process.env.PLANT_STORE,
      override: { useBigInt: true },
    },
  },
};
`;

const CREATE = `import { createPlant } from './orval.ts';
const headers = {
  'Authorization': 'Bearer ' + process.env.TOKEN,
  'Content-Type': 'application/json',
};
console.log(await createPlant({ id: 9007199254741003n, name: 'Fern' }, { headers }));
`;

describe('a client that orval generates', () => {
  let application: TestApplication;
  let project: string;
  let env: NodeJS.ProcessEnv;
  beforeAll(async () => {
    ({ application, env } = await startForClients());
    project = makeFolder();
    for (const name of ['package.json', 'package-lock.json']) {
      copyFileSync(join(__dirname, 'orval', name), join(project, name));
    }
    writeFileSync(join(project, 'orval.config.mjs'), CONFIGURATION);
    writeFileSync(join(project, 'create.ts'), CREATE);
    writeFileSync(join(project, 'to-json.ts'), example('Generated', 'ts toJSON'));
    const { code, stdout, stderr } = await shell(
      'npm ci --prefer-offline --no-audit --no-fund --ignore-scripts && npx orval --config orval.config.mjs',
      { cwd: project, env },
    );
    if (code !== 0) throw new Error(stdout + stderr);
  }, 300_000);
  afterAll(async () => {
    await application.stop();
    removeFolder(project);
  });

  const create = (...options: string[]): Promise<Run> =>
    run(process.execPath, [...options, 'create.ts'], { cwd: project, env });

  it('throws, because it gives a bigint to JSON.stringify', async () => {
    const { code, stderr } = await create();

    expect(code).toBe(1);
    expect(stderr).toContain('TypeError: Do not know how to serialize a BigInt');
    expect(application.store.plants()).toEqual([]);
  });

  it('stores the exact id, with the remedy', async () => {
    expect(await create('--import', './to-json.ts')).toMatchObject({ code: 0 });
    expect(application.store.plants()).toEqual([{ id: 9_007_199_254_741_003n, name: 'Fern' }]);
  });
});
