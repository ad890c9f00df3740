import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { devDependencies } from '../../../package.json';
import { useFolder } from '../../support/folder';
import { PROJECT, run } from '../packed';

/** Installs what is committed, from the clone as a git repository. */

/** What the module needs of its peers to be loaded; npm does not install optional ones by itself. */
const PEERS = [
  ...(['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'] as const),
  ...(['class-transformer', 'class-validator'] as const),
].map((name) => `${name}@${devDependencies[name]}`);

const folder = useFolder();

describe('npm install from git', () => {
  it('makes the module with its types, and the program', () => {
    writeFileSync(join(folder, 'package.json'), '{"private":true}');

    const repository = `git+file://${PROJECT}`;
    run(folder, 'npm', 'install', '--prefer-offline', '--no-audit', repository, ...PEERS);

    const print = 'console.log(typeof require("plant-store").PlantsModule.forRoot)';
    expect(run(folder, process.execPath, '--eval', print)).toBe('function\n');
    expect(existsSync(join(folder, 'node_modules/plant-store/dist/plants/index.d.ts'))).toBe(true);
    expect(run(folder, 'npx', '--no', '--', 'plant-store', '--version')).toBe('1.0.0\n');
  }, 600_000);
});
