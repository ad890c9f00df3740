/** Tests the service and the module on other versions of Node.js. `npm test` does not run it: it needs the registry. */
import { join } from 'node:path';
import { engines } from '../../package.json';
import { engines as moduleEngines } from '../../src/plants/package.json';
import { useFolder } from '../support/folder';
import { describeWith, run, shell } from '../support/run';
import { TestProcess } from '../support/test-process';
import { installNode, PROJECT } from './packed';

const MAIN = join(PROJECT, 'dist/main.js');

/** The oldest version of each line that the service supports. */
const OLDEST_VERSIONS = engines.node.match(/[\d.]+/g) ?? [];

/** Suites that show undocumented behavior of Node.js or of its SQLite. */
const SUITES = ['wire.e2e', 'sqlite.errors', 'sqlite.session', 'sqlite-plants.repository'];

const home = useFolder();

describeWith('curl', () => {
  it.each(OLDEST_VERSIONS)('stores a plant on Node.js %s', async (version) => {
    const env = { PATH: process.env.PATH, PORT: '0' };
    const service = new TestProcess([installNode(version), MAIN], { cwd: home, env });
    try {
      const [curl] = await service.waitForOutput(/^curl .*$/m, 'stderr');

      expect((await shell(curl)).stdout).toMatch(/\r\n\r\n{"name":"Fern"}$/);
    } finally {
      await service.end();
    }
  });
});

it.each(OLDEST_VERSIONS)('the service can rely on Node.js %s as on the newest', async (version) => {
  const jest = join(PROJECT, 'node_modules/jest/bin/jest.js');

  const { code, stderr } = await run(installNode(version), [jest, ...SUITES], { cwd: PROJECT });

  expect(stderr).toContain(`Test Suites: ${SUITES.length} passed, ${SUITES.length} total`);
  expect(code).toBe(0);
});

it('the module throws one sentence on Node.js 20', async () => {
  const node = installNode('20.19.0');

  const { code, stderr } = await run(node, [join(PROJECT, 'dist/plants/index.js')]);

  expect(code).toBe(1);
  expect(stderr).toContain(
    `OperatorError: @plant-store/nestjs requires Node.js ${moduleEngines.node}. This is v20.19.0, ${node}.\n`,
  );
  expect(stderr).not.toContain('TypeError');
});

it.each(['20.19.0', '22.23.2'])(
  'the service exits with one error message on Node.js %s',
  async (version) => {
    const node = installNode(version);

    expect(await run(node, [MAIN])).toEqual({
      code: 1,
      stdout: '',
      stderr: `The Plant Store requires Node.js ${engines.node}. This is v${version}, ${node}.\n`,
    });
  },
);
