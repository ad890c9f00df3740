import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeNewFile } from './new-file';
import { useFolder } from '../../test/support/folder';

const folder = useFolder();
const path = join(folder, 'plants.ndjson');
const EXISTS = `${path} exists already. Name a new file.`;

it('one of the files that get the same name at once gets it, and the others say so', async () => {
  const writes = Array.from({ length: 20 }, (_, at) =>
    writeNewFile(path, (draft) => writeFile(draft, String(at))),
  );

  const results = await Promise.allSettled(writes);

  const winners = [...results.keys()].filter((at) => results[at]?.status === 'fulfilled');
  const faults = results.flatMap((result) =>
    result.status === 'rejected' ? [(result.reason as Error).message] : [],
  );
  expect(winners).toHaveLength(1);
  expect(readFileSync(path, 'utf8')).toBe(String(winners[0]));
  expect(new Set(faults)).toEqual(new Set([EXISTS]));
  expect(readdirSync(folder)).toEqual(['plants.ndjson']);
});

it('a file that appears while another is written stays', async () => {
  const writing = writeNewFile(path, async (draft) => {
    await writeFile(draft, 'own');
    writeFileSync(path, 'other');
  });

  await expect(writing).rejects.toThrow(EXISTS);

  expect(readFileSync(path, 'utf8')).toBe('other');
  expect(readdirSync(folder)).toEqual(['plants.ndjson']);
});

it('a file whose writing fails leaves nothing', async () => {
  const writing = writeNewFile(path, () => Promise.reject(new Error('no space')));

  await expect(writing).rejects.toThrow('no space');

  expect(readdirSync(folder)).toEqual([]);
});
