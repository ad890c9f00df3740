/** Shows that the scripts of CONTRIBUTING.md run a single file by its name. */
import { basename, join } from 'node:path';
import { shell } from '../support/run';

it.each([
  ['test:all', 'data-docs.system-spec.ts'],
  ['test:package', 'first-step.slow-spec.ts'],
  ['test:hosts', 'new-projects.slow-spec.ts'],
  ['test:deploy', 'proxies.slow-spec.ts'],
  ['test:faults', 'io-errors.slow-spec.ts'],
])('npm run %s -- NAME runs only the file %s', async (script, file) => {
  const command = `npm run --silent ${script} -- ${file} --listTests`;
  const { stdout } = await shell(command, { cwd: join(__dirname, '../..') });

  expect(
    stdout
      .trim()
      .split('\n')
      .map((path) => basename(path)),
  ).toEqual([file]);
});
