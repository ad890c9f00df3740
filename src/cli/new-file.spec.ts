/** Tests which files `writeNewFile` leaves behind. */
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeNewFile } from './new-file';
import { useFolder } from '../../test/support/folder';

const folder = useFolder();
const path = join(folder, 'plants.ndjson');

const EXISTS = `${path} already exists. Choose another file name.`;

it('writeNewFile keeps the file of the first of two commands that write the same file', async () => {
  const second = writeNewFile(path, async (draft) => {
    await writeFile(draft, 'second');
    await writeNewFile(path, (other) => writeFile(other, 'first'));
  });

  await expect(second).rejects.toThrow(EXISTS);

  expect(readFileSync(path, 'utf8')).toBe('first');
  expect(readdirSync(folder)).toEqual(['plants.ndjson']);
});

it('writeNewFile does not replace a symbolic link that leads to no file', async () => {
  symlinkSync('none', path);

  await expect(writeNewFile(path, jest.fn())).rejects.toThrow(EXISTS);
});

it('writeNewFile leaves no file behind when writing fails', async () => {
  const writing = writeNewFile(path, () => Promise.reject(new Error('no space')));

  await expect(writing).rejects.toThrow('no space');

  expect(readdirSync(folder)).toEqual([]);
});
