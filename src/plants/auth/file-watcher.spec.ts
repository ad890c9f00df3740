import {
  mkdirSync,
  renameSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { FileWatcher } from './file-watcher';
import { useFolder } from '../../../test/support/folder';
import { useLog } from '../../../test/support/log';
import { until } from '../../../test/support/until';

describe('FileWatcher', () => {
  const folder = useFolder();
  const file = join(folder, 'file');
  const { lines } = useLog();
  let watcher: FileWatcher<string>;
  afterEach(() => {
    watcher.stop();
  });

  function create(): void {
    watcher = new FileWatcher('The file', [file], (content) => {
      if (content.length === 0) throw new Error('it is empty');
      return content.toString();
    });
  }

  it('returns the new content after a file behind symbolic links was replaced, as Kubernetes does', async () => {
    for (const version of ['old', 'new']) {
      mkdirSync(join(folder, version));
      writeFileSync(join(folder, version, 'file'), version);
      utimesSync(join(folder, version, 'file'), 0, 0);
    }
    symlinkSync('old', join(folder, '..data'));
    symlinkSync(join('..data', 'file'), file);
    create();
    watcher.start();

    symlinkSync('new', join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    await until(() => lines.length > 0);

    expect(watcher.current).toBe('new');
  });

  it.each<[string, string, (path: string) => void]>([
    ['becomes invalid', 'it is empty', truncateSync],
    ['disappears', 'ENOENT', unlinkSync],
  ])('keeps the last valid value while the file %s', async (_how, message, breakFile) => {
    writeFileSync(file, 'valid');
    create();
    watcher.start();

    breakFile(file);
    await until(() => lines.length > 0);
    expect(lines).toEqual([expect.stringMatching(`^error The file cannot be used: ${message}`)]);
    expect([watcher.current, watcher.isValid]).toEqual(['valid', false]);

    writeFileSync(file, 'valid');
    await until(() => watcher.isValid);
    expect(watcher.current).toBe('valid');
  });

  it('notices a change between its creation and its start', async () => {
    writeFileSync(file, 'old');
    create();
    writeFileSync(file, 'new');

    watcher.start();
    await until(() => lines.length > 0);

    expect(watcher.current).toBe('new');
  });

  it.each([
    ['shorter', 'first'],
    ['empty', ''],
    ['the same again', 'first\nsecond\n'],
  ])(
    'does not use a file that is %s for a moment, because it is being written',
    async (_how, partial) => {
      writeFileSync(file, 'first\nsecond\n');
      create();
      const values: string[] = [];
      writeFileSync(file, partial);
      // This looks at the file at once.
      watcher.start((value) => values.push(value));

      writeFileSync(file, 'first\nsecond\nthird\n');
      await until(() => lines.length > 0);

      expect(values).toEqual(['first\nsecond\nthird\n']);
      expect(lines).toEqual(['log The file: reloaded.']);
    },
  );
});
