import { cpSync, existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makeFolder, removeFolder } from './support/folder';
import { run } from './support/run';

const ROOT = join(__dirname, '..');

describe('the start of the program', () => {
  let folder: string;
  beforeEach(() => {
    folder = makeFolder();
    cpSync(join(ROOT, 'dist'), join(folder, 'dist'), {
      recursive: true,
      // Programs of other suites may write their compiled code there at this moment.
      filter: (path) => basename(path) !== '.compile-cache',
    });
    cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  });
  afterEach(() => {
    removeFolder(folder);
  });

  const cache = (): string => join(folder, 'dist/program/.compile-cache');
  const start = () =>
    run(process.execPath, [join(folder, 'dist/program/plant-store.js'), '--help']);

  it('keeps compiled code beside the program', async () => {
    await start();

    expect(existsSync(cache())).toBe(true);
  });

  it('goes on without a word where the program cannot be written to', async () => {
    writeFileSync(cache(), 'no folder can be made here');

    const { stdout, stderr } = await start();

    expect(stdout).toContain('plant-store');
    expect(stderr).toBe('');
  });
});
