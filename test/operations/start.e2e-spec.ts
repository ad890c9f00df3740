import { cpSync, existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { makeFolder, removeFolder } from '../support/folder';
import { run } from '../support/run';

const ROOT = join(__dirname, '../..');

/** Prints which files are loaded once the program's modules are. */
const TELL_LOADED = `
  require(process.argv[1]);
  console.log(Object.keys(require.cache).join('\\n'));`;

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

  it('loads neither the OpenAPI tools nor what explains refusals', async () => {
    const application = join(ROOT, 'dist/application.js');

    const { stdout } = await run(process.execPath, ['-e', TELL_LOADED, application]);

    expect(stdout).toContain('dist/plants/plants.controller.js');
    expect(stdout).not.toMatch(/node_modules\/(@nestjs\/swagger|class-validator)\//);
  });

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
