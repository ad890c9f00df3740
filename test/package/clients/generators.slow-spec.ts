/** Tests clients that the commands in docs/clients.md and orval generate in a new folder. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorNumbers } from '../../support/error-bodies';
import { TestApplication, TOKEN } from '../../support/application';
import { makeFolder, removeFolder } from '../../support/folder';
import { shell } from '../../support/run';
import { readExample } from '../packed';

const ORVAL = `export default { plants: {
  input: process.env.PLANT_STORE + '/openapi.json',
  output: { target: 'src/orval.ts', client: 'fetch', baseUrl: process.env.PLANT_STORE, override: { useBigInt: true } },
} };`;

const CREATE_BY_ORVAL = `import './to-json.js';
import { createPlant } from './orval.js';
const headers = { Authorization: 'Bearer ' + process.env.TOKEN };
await createPlant({ id: 9007199254741003n, name: 'Fern' }, { headers });`;

describe('code generators in docs/clients.md', () => {
  const application = TestApplication.use();
  const folder = makeFolder();
  const run = async (lines: string, token = TOKEN) => {
    const env = { ...process.env, PLANT_STORE: application.url.origin, TOKEN: token };
    return shell(`set -e\n${lines}`, { cwd: folder, env });
  };
  beforeAll(async () => {
    const install = 'npm i -D orval && npx orval --config orval.config.mjs';
    writeFileSync(join(folder, 'orval.config.mjs'), ORVAL);
    const generated = await run(`${readExample('Generated', 'sh')}\n${install}`);
    writeFileSync(join(folder, 'src/generated.ts'), readExample('Generated', 'ts'));
    writeFileSync(join(folder, 'src/to-json.ts'), readExample('Generated', 'ts toJSON'));
    writeFileSync(join(folder, 'src/create-by-orval.ts'), CREATE_BY_ORVAL);
    const compiled = await run('npx tsc');
    for (const { code, stdout, stderr } of [generated, compiled]) {
      if (code !== 0) throw new Error(stdout + stderr);
    }
  });
  beforeEach(() => {
    application.store.removePlants();
  });
  afterAll(() => {
    removeFolder(folder);
  });

  it('hey-api: the documented commands generate a client that creates a plant', async () => {
    expect(await run('node src/generated.js')).toMatchObject({ code: 0, stdout: 'Fern\n' });

    expect(application.store.plants()).toMatchObject([{ name: 'Fern', tag: 'shade' }]);
  });

  it('hey-api: the client reports the error number and message', async () => {
    const { code, stderr } = await run('node src/generated.js', 'bad');

    expect(code).not.toBe(0);
    expect(stderr).toMatch(`${errorNumbers.invalidToken}: Invalid bearer token`);
  });

  it('orval with useBigInt keeps every digit of the id', async () => {
    await run('node src/create-by-orval.js');

    expect(application.store.plants()).toMatchObject([{ id: 9_007_199_254_741_003n }]);
  });
});
