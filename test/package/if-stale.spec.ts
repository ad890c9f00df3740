/** Runs tools/if-stale.mjs in a project whose build only says that it runs. */
import { copyFileSync, globSync, mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../support/folder';
import { PROJECT, run } from './packed';

const folder = useFolder();
const SOURCES = ['src/main.ts', 'src/plants/index.ts', 'src/plants/plant/plant.ts'];
const SETTINGS = ['tsconfig.json', 'tsconfig.build.json', 'nest-cli.json'];
const RESULT = 'dist/cli/plant-store.js';

const findBuilds = (): string => {
  const script = ['-c', `exec 2>&1; "${process.execPath}" if-stale.mjs build`];
  return run(folder, 'sh', ...script);
};

beforeEach(() => {
  for (const path of ['src/plants/plant', 'dist/cli']) {
    mkdirSync(join(folder, path), { recursive: true });
  }
  copyFileSync(join(PROJECT, 'tools/if-stale.mjs'), join(folder, 'if-stale.mjs'));
  const scripts = { build: 'echo BUILT' };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ scripts }));
  for (const file of [...SOURCES, ...SETTINGS, RESULT]) writeFileSync(join(folder, file), '');
  // Everything is as old as the result.
  const past = new Date(Date.now() - 60_000);
  for (const path of globSync('**', { cwd: folder })) utimesSync(join(folder, path), past, past);
});

it('does not build if nothing is newer than the result', () => {
  expect(findBuilds()).toBe('');
});

it.each([...SOURCES, ...SETTINGS])('builds after a change of %s', (file) => {
  writeFileSync(join(folder, file), 'changed');

  expect(findBuilds()).toBe('BUILT\n');
});

it.each(SOURCES)('builds after %s was deleted', (file) => {
  rmSync(join(folder, file));

  expect(findBuilds()).toBe('BUILT\n');
});

it.each(['src/new.ts', 'src/plants/new.ts'])('builds after %s was added', (file) => {
  writeFileSync(join(folder, file), '');

  expect(findBuilds()).toBe('BUILT\n');
});

it('builds if the result is missing', () => {
  rmSync(join(folder, RESULT));

  expect(findBuilds()).toBe('BUILT\n');
});
