import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
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

it('writeNewFile fails when another command begins to write the same file, which succeeds', async () => {
  let other: Promise<void> | undefined;
  const writing = writeNewFile(path, () => {
    other = writeNewFile(path, async (draft) => {
      await setImmediate();
      await expect(writing).rejects.toThrow(`Another command has begun to write ${path}.`);
      appendFileSync(draft, 'other');
    });
  });

  await Promise.allSettled([writing]);
  await other;

  expect(readFileSync(path, 'utf8')).toBe('other');
  expect(readdirSync(folder)).toEqual(['plants.ndjson']);
});

it('writeNewFile leaves no file behind when writing fails', async () => {
  const writing = writeNewFile(path, () => Promise.reject(new Error('no space')));

  await expect(writing).rejects.toThrow('no space');

  expect(readdirSync(folder)).toEqual([]);
});
