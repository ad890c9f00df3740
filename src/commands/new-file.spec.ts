import { linkSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NewFile } from './new-file';
import { useFolder } from '../../test/support/folder';

const folder = useFolder();
const path = join(folder, 'plants.ndjson');

/** Makes many files of one name at the same time, each with content of its own. */
async function finishAtOnce(count: number): Promise<(string | undefined)[]> {
  const files = Array.from({ length: count }, (_, at) => {
    const file = new NewFile(path);
    // As another process would name it.
    Object.assign(file, { draft: `${file.draft}.${at}` });
    return file;
  });
  for (const [at, file] of files.entries()) {
    const handle = await file.create();
    await handle.writeFile(String(at));
    await handle.close();
  }
  const results = await Promise.allSettled(files.map((file) => file.finish()));
  for (const file of files) file.discard();
  return results.map((result) =>
    result.status === 'fulfilled' ? undefined : (result.reason as Error).message,
  );
}

it('one of the files that get the same name at once gets it, and the others say so', async () => {
  const faults = await finishAtOnce(20);

  const winners = [...faults.entries()].filter(([, fault]) => fault === undefined);
  expect(winners).toHaveLength(1);
  expect(readFileSync(path, 'utf8')).toBe(String(winners[0]?.[0]));
  expect(new Set(faults)).toEqual(new Set([undefined, `${path} exists already. Name a new file.`]));
  expect(readdirSync(folder)).toEqual(['plants.ndjson']);
});

it('a file that appears while another is written stays', async () => {
  const file = new NewFile(path);
  await (await file.create()).close();
  const other = join(folder, 'other');
  writeFileSync(other, 'other');
  linkSync(other, path);

  await expect(file.finish()).rejects.toThrow(`${path} exists already. Name a new file.`);
  file.discard();

  expect(readFileSync(path, 'utf8')).toBe('other');
  expect(readdirSync(folder).sort()).toEqual(['other', 'plants.ndjson']);
});
