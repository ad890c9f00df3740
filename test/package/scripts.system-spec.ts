import { join, relative } from 'node:path';
import { shell } from '../support/run';

/** The scripts of package.json run only the test files that they name. The documentation and the workflows rely on it. */

const ROOT = join(__dirname, '../..');

it.each([
  ['test -- media-type', ['src/plants/http/media-type.spec.ts']],
  ['test:cov -- media-type', ['src/plants/http/media-type.spec.ts']],
  ['test:all -- data-docs', ['test/cli/data-docs.system-spec.ts']],
  ['test:package -- first-step', ['test/package/first-step.slow-spec.ts']],
  ['test:hosts -- new-projects', ['test/package/hosts/new-projects.slow-spec.ts']],
  ['test:deploy -- proxies', ['test/server/proxies.slow-spec.ts']],
  ['test:faults -- io-errors', ['test/faults/io-errors.slow-spec.ts']],
])('npm run %s runs only this file', async (command, files) => {
  const { stdout } = await shell(`npm run --silent ${command} --listTests`, { cwd: ROOT });

  expect(
    stdout
      .trim()
      .split('\n')
      .map((file) => relative(ROOT, file)),
  ).toEqual(files);
});
