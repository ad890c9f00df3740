import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeNewFile } from './new-file';
import { useFolder } from '../../test/support/folder';

const folder = useFolder();
const path = join(folder, 'plants.ndjson');

it('writeNewFile does not overwrite a file that appears while it writes', async () => {
  const writing = writeNewFile(path, async (draft) => {
    await writeFile(draft, 'own');
    writeFileSync(path, 'other');
  });

  await expect(writing).rejects.toThrow('EEXIST');

  expect(readFileSync(path, 'utf8')).toBe('other');
  expect(readdirSync(folder)).toEqual(['plants.ndjson']);
});

it('writeNewFile fails when another command begins to write the same file', async () => {
  const writing = writeNewFile(path, (draft) => rm(draft));

  await expect(writing).rejects.toThrow(`Another command has begun to write ${path}.`);

  expect(readdirSync(folder)).toEqual([]);
});

it('writeNewFile leaves no file behind when writing fails', async () => {
  const writing = writeNewFile(path, () => Promise.reject(new Error('no space')));

  await expect(writing).rejects.toThrow('no space');

  expect(readdirSync(folder)).toEqual([]);
});
