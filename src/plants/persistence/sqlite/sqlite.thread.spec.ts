import fs from 'node:fs';
import { join } from 'node:path';
import { useFolder } from '../../../../test/support/folder';
import { execute, readPlants } from '../../../../test/support/sqlite';
import { NotStoredError, SqliteThread } from './sqlite.thread';

const { copyFile, rename, rm, truncate } = fs.promises;

const CHANGED = /^the database file or its .* was moved, .* or truncated\. A restart is needed: /;

describe('SqliteThread', () => {
  const folder = useFolder();
  const file = join(folder, 'plants.db');
  const wal = `${file}-wal`;
  const otherPath = join(folder, 'other');
  let thread: SqliteThread;
  beforeEach(async () => {
    fs.rmSync(otherPath, { force: true });
    thread = await SqliteThread.start({ path: file, databaseId: undefined }, () => undefined);
  });
  afterEach(() => close());

  const close = () => thread.request('close').catch(() => undefined);
  const insert = (id: bigint) => thread.request([{ id, name: 'Fern', keyDigest: undefined }]);
  const readFiles = () =>
    [file, wal].map((path) => fs.existsSync(path) && fs.readFileSync(path, 'latin1'));

  async function replaceByCopy(path: string): Promise<void> {
    await copyFile(path, otherPath);
    await rename(otherPath, path);
  }

  it.each<[string, () => Promise<void>]>([
    ['the database file is moved', () => rename(file, otherPath)],
    ['the database file is replaced', () => replaceByCopy(file)],
    ['the database file is deleted', () => rm(file)],
    ['the database file is truncated to a smaller size', () => truncate(file, 4096)],
    ['the database file is truncated to zero bytes', () => truncate(file)],
    ['the WAL is moved', () => rename(wal, otherPath)],
    ['the WAL is replaced', () => replaceByCopy(wal)],
    ['the WAL is deleted', () => rm(wal)],
    ['the WAL is truncated to a smaller size', () => truncate(wal, 8192)],
    ['the WAL is truncated to zero bytes', () => truncate(wal)],
  ])('stores nothing more and leaves the files unchanged when %s', async (_what, change) => {
    for (let id = 1n; id <= 5n; id++) await insert(id);
    const before = [file, wal].map((path) => [path, fs.readFileSync(path)] as const);
    await change();
    const changed = readFiles();

    await expect(insert(6n)).rejects.toThrow(CHANGED);
    await expect(insert(6n)).rejects.toBeInstanceOf(NotStoredError);
    expect(readFiles()).toEqual(changed);
    // Restoring the files does not help: the thread cannot know whether they are complete.
    for (const [path, content] of before) fs.writeFileSync(path, content);
    await expect(thread.request('probe')).rejects.toThrow(CHANGED);
    await expect(insert(6n)).rejects.toThrow(CHANGED);
    await close();

    expect(readPlants(file)).toHaveLength(5);
  });

  it('does not checkpoint on close when the database file is truncated', async () => {
    for (let id = 1n; id <= 5n; id++) await insert(id);
    await truncate(file, 4096);
    const changed = readFiles();

    await close();

    expect(readFiles()).toEqual(changed);
  });

  it('rejects a probe and a read when the WAL is deleted', async () => {
    await insert(1n);
    fs.rmSync(wal);

    await expect(thread.request({ from: 1n, to: 9n, limit: 9 })).rejects.toThrow(CHANGED);
    await expect(thread.request('probe')).rejects.toThrow(CHANGED);
  });

  it('accepts plants when another connection empties the WAL', async () => {
    for (let id = 1n; id <= 5n; id++) await insert(id);
    execute(file, 'PRAGMA wal_checkpoint(TRUNCATE)');
    expect(fs.statSync(wal).size).toBe(0);

    expect(await insert(6n)).toEqual(['created']);
    expect(readPlants(file)).toHaveLength(6);
  });

  it('accepts plants when another connection empties the WAL and then adds pages to it', async () => {
    for (let id = 1n; id <= 50n; id++) await insert(id);
    execute(file, 'PRAGMA wal_checkpoint(TRUNCATE)');
    execute(file, 'INSERT INTO plants (id, name) VALUES (100, hex(zeroblob(10000)))');

    expect(await insert(51n)).toEqual(['created']);
  });

  describe('when it is started for a file that was open before', () => {
    const start = async () => {
      const { databaseId } = thread;
      thread = await SqliteThread.start({ path: file, databaseId }, () => undefined);
    };
    beforeEach(async () => {
      await insert(1n);
      await close();
    });

    it('opens the same file when closing it has deleted the WAL', async () => {
      expect(fs.existsSync(wal)).toBe(false);
      await start();

      expect(await insert(1n)).toEqual(['taken']);
    });

    it.each<[string, () => Promise<void>]>([
      ['another', () => replaceByCopy(file)],
      ['a missing', () => rm(file)],
      ['an empty', () => truncate(file)],
    ])('does not open %s file', async (_what, change) => {
      await change();
      const changed = readFiles();

      await expect(start()).rejects.toThrow(CHANGED);

      expect(readFiles()).toEqual(changed);
    });
  });
});
