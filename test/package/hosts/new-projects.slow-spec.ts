import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../../support/folder';
import { installLines, PROJECT, recipes, run } from '../packed';

/** The code of docs/embedding.md, pasted into new projects of Nest, as they are made today. */

/** What `nest new` runs once it has asked for the type. */
const NEW =
  '--package=@angular-devkit/schematics-cli -- schematics @nestjs/schematics:application --name=app --type';

describe.each([
  [12, 'esm', 'ES modules and Vitest'],
  [12, 'cjs', 'CommonJS and Jest'],
  [11, 'cjs', 'CommonJS and Jest'],
])('a new project of Nest %d with the answer %s: %s', (nest, type, _what) => {
  const folder = makeFolder();
  const home = join(folder, 'app');
  beforeAll(() => {
    // The page has a clone beside the application.
    mkdirSync(join(folder, 'plant-store'));
    symlinkSync(join(PROJECT, 'dist'), join(folder, 'plant-store/dist'));
    run(folder, 'sh', '-ec', `npm exec --yes --package=@nestjs/schematics@${nest} ${NEW}=${type}`);
    run(home, 'npm', 'install', '--prefer-offline', '--no-audit', '--no-fund');
    run(home, 'sh', '-ec', installLines());
    for (const [name, code] of recipes()) writeFileSync(join(home, 'src', name), code);
  }, 600_000);
  afterAll(() => {
    removeFolder(folder);
  });

  it('accepts the types of all programs', () => {
    expect(run(home, 'npx', 'tsc', '--noEmit')).toBe('');
  });

  it('passes the test of the page, among its own', () => {
    expect(run(home, 'sh', '-c', 'npm test 2>&1')).toContain('plants.spec.ts');
  });
});
