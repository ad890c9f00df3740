/** Tests how a session of SQLite writes, and recognizes its files. */
import * as fs from 'node:fs';
import { join } from 'node:path';
import { makeFolder, removeFolder } from '../../../../test/support/folder';
import { assertSameFiles, assertWritable, openSession } from './sqlite.session';

jest.mock('node:fs', () => {
  const actual = jest.requireActual<typeof fs>('node:fs');
  return { ...actual, statSync: jest.fn(actual.statSync) };
});

let folder: string;
let file: string;
beforeEach(() => {
  folder = makeFolder();
  file = join(folder, 'plants.db');
});
afterEach(() => {
  removeFolder(folder);
});

it('assertWritable writes to the WAL, although the plant that it would insert exists', () => {
  const { database } = openSession(file);
  // Otherwise SQLite writes the page of the insert that is undone.
  database.exec("INSERT INTO plants (id, name) VALUES (0, 'Fern')");
  const walBytes = () => fs.lstatSync(`${file}-wal`).size;
  const before = walBytes();

  assertWritable(database);

  expect(walBytes()).toBeGreaterThan(before);
  database.close();
});

/** XFS, Btrfs and NFS have such inode numbers. JavaScript numbers near it are multiples of 256. */
const LARGE_INODE = 2n ** 60n;

it('assertSameFiles detects a file whose inode number differs only beyond the precision of a number', () => {
  const { statSync } = jest.requireActual<typeof fs>('node:fs');
  let inode = LARGE_INODE;
  jest.mocked(fs.statSync).mockImplementation(((path: string, options?: fs.StatOptions) => {
    const stats = statSync(path, options);
    if (stats) Object.assign(stats, { ino: options?.bigint === true ? inode : Number(inode) });
    return stats;
  }) as typeof fs.statSync);
  const session = openSession(file);
  assertSameFiles(session);

  inode++;

  expect(() => {
    assertSameFiles(session);
  }).toThrow('was moved, replaced or deleted');
  session.database.close();
  jest.mocked(fs.statSync).mockImplementation(statSync);
});
