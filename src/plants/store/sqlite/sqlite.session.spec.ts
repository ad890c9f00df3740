import * as fs from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../../../../test/support/folder';
import { assertSameFiles, openSession } from './sqlite.session';

jest.mock('node:fs', () => ({ ...jest.requireActual<typeof fs>('node:fs'), statSync: jest.fn() }));

/** XFS, Btrfs and NFS have such inode numbers. JavaScript numbers near it are multiples of 256. */
const LARGE_INODE = 2n ** 60n;

it('assertSameFiles detects a file whose inode number differs only beyond the precision of a number', () => {
  const folder = makeFolder();
  const { statSync } = jest.requireActual<typeof fs>('node:fs');
  let inode = LARGE_INODE;
  jest.mocked(fs.statSync).mockImplementation(((path: string, options?: fs.StatOptions) => {
    const stats = statSync(path, options);
    if (stats) Object.assign(stats, { ino: options?.bigint === true ? inode : Number(inode) });
    return stats;
  }) as typeof fs.statSync);
  const session = openSession(join(folder, 'plants.db'));
  assertSameFiles(session);

  inode++;

  expect(() => {
    assertSameFiles(session);
  }).toThrow('was moved, replaced or deleted');
  session.database.close();
  removeFolder(folder);
});
