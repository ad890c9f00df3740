import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../../support/folder';
import { PROJECT, run } from '../packed';

/** Installs what is committed, from the clone as a git repository. */

const folder = useFolder();

describe('npm install from git', () => {
  it('makes the module with its types, and the program', () => {
    writeFileSync(join(folder, 'package.json'), '{"private":true}');

    run(folder, 'npm', 'install', '--prefer-offline', '--no-audit', `git+file://${PROJECT}`);

    const print = 'console.log(typeof require("plant-store").PlantsModule.forRoot)';
    expect(run(folder, process.execPath, '--eval', print)).toBe('function\n');
    expect(existsSync(join(folder, 'node_modules/plant-store/dist/plants/index.d.ts'))).toBe(true);
    expect(run(folder, 'npx', '--no', '--', 'plant-store', '--version')).toBe('1.0.0\n');
  }, 600_000);
});
