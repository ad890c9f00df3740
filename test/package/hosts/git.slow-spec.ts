import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../../support/folder';
import { run } from './hosts';

/** Installs what is committed, from the clone as a git repository. */

const PROJECT = join(__dirname, '../../..');

describe('npm install from git', () => {
  let folder: string;
  beforeAll(() => {
    folder = makeFolder();
    writeFileSync(join(folder, 'package.json'), '{"private":true}');
    run(folder, 'npm', 'install', '--prefer-offline', '--no-audit', `git+file://${PROJECT}`);
  }, 570_000);
  afterAll(() => {
    removeFolder(folder);
  });

  it('has the module with its types', () => {
    const print = 'console.log(typeof require("plant-store").PlantsModule.forRoot)';

    expect(run(folder, process.execPath, '--eval', print)).toBe('function\n');
    expect(existsSync(join(folder, 'node_modules/plant-store/dist/plants/index.d.ts'))).toBe(true);
  });

  it('has the program', () => {
    expect(run(folder, 'npx', '--no', '--', 'plant-store', '--version')).toBe('1.0.0\n');
  });
});
