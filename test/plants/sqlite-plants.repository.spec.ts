import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { UnavailableError } from '../../src/plants';
import type { CommittingPlantsRepository } from '../../src/plants/persistence/committing-plants.repository';
import { openRepository } from '../../src/plants/persistence/stores';
import { SqliteThread } from '../../src/plants/persistence/sqlite/sqlite.thread';
import { StoreOpenError } from '../../src/plants/persistence/store-open.error';
import { describeRepository, describeShortPages, type StoreUnderTest } from './repository.contract';
import { makeFolder, removeFolder } from '../support/folder';
import { useLog } from '../support/log';
import { execute, lockDatabase, query } from '../support/sqlite';
import { SqliteStore } from '../support/stores';
import { until } from '../support/until';

async function openStore(): Promise<StoreUnderTest> {
  const store = new SqliteStore();
  const repository = await openRepository({ sqlite: store.file });
  const second = await openRepository({ sqlite: store.file });
  const close = async () => {
    for (const each of [repository, second]) await each.onApplicationShutdown();
    store.remove();
  };
  return Object.assign(store, { repository, second, close });
}

describeRepository('The repository on SQLite', openStore);
describeShortPages('The repository on SQLite', openStore);

describe('The repository on SQLite', () => {
  let folder: string;
  let file: string;
  let repository: CommittingPlantsRepository;
  const { lines: logged, errors } = useLog();
  beforeEach(async () => {
    folder = makeFolder();
    file = join(folder, 'deep', 'er', 'plants ?#%.db');
    repository = await openRepository({ sqlite: file });
  });
  afterEach(async () => {
    await repository.onApplicationShutdown();
    removeFolder(folder);
  });

  /** Creates a file. */
  async function createStore(path: string): Promise<string> {
    await (await openRepository({ sqlite: path })).onApplicationShutdown();
    return path;
  }

  const insert = (id: bigint) => repository.insert({ id, name: 'Fern' });
  const expectRefused = (id: bigint) => expect(insert(id)).rejects.toThrow(UnavailableError);

  const suffixes = ['', '-wal', '-shm'];

  /** What the database file and its log have. */
  const contents = () =>
    [file, `${file}-wal`].map((each) => fs.existsSync(each) && fs.readFileSync(each, 'latin1'));

  async function waitForProbes(count: number): Promise<void> {
    const probe = jest.spyOn(SqliteThread.prototype, 'probe');
    await until(() => probe.mock.calls.length >= count);
    await Promise.allSettled(probe.mock.results.map(({ value }) => value as unknown));
    probe.mockRestore();
  }

  function makeBackup(): string {
    const backup = join(folder, 'backup.db');
    execute(file, `VACUUM INTO '${backup}'`);
    return backup;
  }

  function removeStore(): void {
    for (const suffix of suffixes) fs.rmSync(file + suffix, { force: true });
  }

  async function restore(backup: string): Promise<void> {
    removeStore();
    fs.renameSync(backup, file);
    await until(() => repository.isReady());
  }

  it('is not ready while another process writes, and recovers without traffic', async () => {
    const writer = lockDatabase(file);
    expect(repository.isReady()).toBe(true);

    await expectRefused(2n);
    expect(repository.isReady()).toBe(false);
    expect(repository.findFault()?.message).toBe(`${file}: database is locked.`);

    writer.close();
    await until(() => repository.isReady());
    expect(repository.findFault()).toBeUndefined();
    expect(await insert(2n)).toBe('created');
  });

  describe('when its log has grown beside a reader', () => {
    const logSize = () => fs.statSync(`${file}-wal`).size;
    let nextId: bigint;
    beforeEach(async () => {
      const reader = new DatabaseSync(file);
      reader.exec('BEGIN; SELECT * FROM plants');
      for (nextId = 1n; logSize() < 2 ** 26; nextId++) {
        await repository.insert({ id: nextId, name: 'x'.repeat(2 ** 20) });
      }
      reader.close();
    });

    it('empties it once nobody reads and no plants come', async () => {
      await until(() => logSize() === 0);

      expect(await insert(nextId)).toBe('created');
    });

    it('shortens it while plants come', async () => {
      await until(async () => (await insert(nextId++)) === 'created' && logSize() <= 2 ** 25);

      expect(logSize()).toBeGreaterThan(0);
    });
  });

  it.each<[string, RegExp, () => void | Promise<void>]>([
    [
      'missing',
      /the file is missing: restore the database file, or restart the service/,
      removeStore,
    ],
    [
      'replaced by an empty file beside its log',
      /the file is empty, but its write-ahead log .*-wal has content: put the file back/,
      () => {
        fs.rmSync(file);
        fs.writeFileSync(file, '');
      },
    ],
    [
      'cut to its first page',
      /the database file was truncated, and its .* belongs to what it was: stop the service and run `plant-store restore BACKUP`/,
      () => fs.promises.truncate(file, 4096),
    ],
    [
      'replaced by a database of another program',
      /not the store that was in use before \(no such table: plants_store\)/,
      () => {
        removeStore();
        execute(file, 'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT, tag TEXT)');
      },
    ],
    [
      'replaced by another store beside the log of the first',
      /-wal still belongs to the previous file/,
      async () => fs.promises.rename(await createStore(join(folder, 'other.db')), file),
    ],
  ])(
    'is not ready, changes nothing and says why while its file is %s, until its store is back',
    async (_what, fault, replace) => {
      await insert(1n);
      const backup = makeBackup();
      await replace();
      const found = contents();

      await expectRefused(2n);
      await expectRefused(2n);
      await waitForProbes(2);
      expect(repository.isReady()).toBe(false);
      expect(contents()).toEqual(found);
      expect(errors().filter((line) => fault.test(line))).toHaveLength(1);

      await restore(backup);
      expect(logged.at(-1)).toBe(`log ${file}: in use again.`);
      expect(await insert(1n)).toBe('taken');
      expect(await insert(2n)).toBe('created');
    },
  );

  it('does not write its log into a file that was put in the place of its own, when it closes', async () => {
    await insert(1n);
    fs.renameSync(await createStore(join(folder, 'other.db')), file);
    const found = contents();

    await repository.onApplicationShutdown();

    expect(contents()).toEqual(found);
  });

  it('does not use its own file again after that was cut, until its log is gone', async () => {
    await insert(1n);
    const backup = makeBackup();
    fs.truncateSync(file, 4096);
    await expectRefused(2n);
    fs.copyFileSync(backup, file);

    await waitForProbes(2);
    expect(repository.isReady()).toBe(false);
    expect(fs.readFileSync(file).equals(fs.readFileSync(backup))).toBe(true);

    fs.rmSync(`${file}-wal`);
    await until(() => repository.isReady());
    expect(await insert(1n)).toBe('taken');
  });

  it('is one store with the file that a symbolic link leads to, and with its log', async () => {
    const link = join(folder, 'link.db');
    fs.symlinkSync(file, link);
    const second = await openRepository({ sqlite: link });
    const insertBySecond = (id: bigint) => second.insert({ id, name: 'Moss' });

    expect([await insert(1n), await insertBySecond(1n)]).toEqual(['created', 'taken']);
    expect([await insertBySecond(2n), await insert(2n)]).toEqual(['created', 'taken']);
    fs.rmSync(`${file}-wal`);

    await expect(insertBySecond(3n)).rejects.toThrow(UnavailableError);
    await second.onApplicationShutdown();
  });

  it('makes folders and files with a log for its own user alone, and leaves a file as it is', async () => {
    const modeOf = (path: string) => fs.statSync(path).mode & 0o777;
    const existing = join(folder, 'existing.db');
    fs.writeFileSync(existing, '', { mode: 0o640 });
    await createStore(existing);

    expect(['deep', 'deep/er'].map((each) => modeOf(join(folder, each)))).toEqual([0o700, 0o700]);
    expect(query(file, 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    expect(suffixes.map((suffix) => modeOf(file + suffix))).toEqual(Array(3).fill(0o600));
    expect(modeOf(existing)).toBe(0o640);
  });

  it('does not begin a new database beside the log of one that is gone', async () => {
    await insert(1n);
    const log = fs.readFileSync(`${file}-wal`);
    await repository.onApplicationShutdown();
    fs.rmSync(file);
    fs.writeFileSync(`${file}-wal`, log);

    await expect(openRepository({ sqlite: file })).rejects.toThrow(
      /the file is missing, but its write-ahead log .*-wal has content/,
    );

    expect(fs.readFileSync(`${file}-wal`).equals(log)).toBe(true);
    fs.rmSync(`${file}-wal`);
    repository = await openRepository({ sqlite: file });
  });

  it('accepts plants if another process has shrunk the database', async () => {
    const name = 'x'.repeat(100_000);
    for (let id = 1n; id <= 9n; id++) await repository.insert({ id, name });
    execute(file, 'PRAGMA wal_checkpoint(TRUNCATE)');
    expect(await insert(10n)).toBe('created');
    execute(file, 'DELETE FROM plants; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)');
    expect(fs.statSync(file).size).toBeLessThan(100_000);

    expect(await insert(1n)).toBe('created');
    expect(errors()).toEqual([]);
  });

  describe('with a damaged table', () => {
    const PAGE = 4096;

    const rootPage = () =>
      Number(query(file, "SELECT rootpage FROM sqlite_schema WHERE name = 'plants'")[0]?.rootpage);

    function damage(page: number): void {
      const descriptor = fs.openSync(file, 'r+');
      fs.writeSync(descriptor, Buffer.alloc(PAGE, 0xff), 0, PAGE, (page - 1) * PAGE);
      fs.closeSync(descriptor);
    }

    /** The right-most child of an interior page, https://sqlite.org/fileformat2.html#b_tree_pages. */
    const lastPage = () => fs.readFileSync(file).readUInt32BE((rootPage() - 1) * PAGE + 8);

    const advice =
      /malformed: run `plant-store check --deep`; to repair it, .* `plant-store restore BACKUP`/;

    beforeEach(async () => {
      for (let id = 1n; id <= 50n; id++) await repository.insert({ id, name: 'x'.repeat(1000) });
      execute(file, 'PRAGMA wal_checkpoint(TRUNCATE)');
    });

    it('is not ready if a page is damaged, and says once what to do', async () => {
      const backup = makeBackup();
      damage(lastPage());
      // The repository has read the page. After this it reads all pages again.
      execute(file, 'PRAGMA user_version = 3');

      await expectRefused(51n);
      await waitForProbes(2);
      expect(repository.isReady()).toBe(false);
      expect(errors()).toEqual([expect.stringMatching(advice)]);

      await restore(backup);
      expect(await insert(51n)).toBe('created');
    });

    it('does not start if the root page is damaged', async () => {
      await repository.onApplicationShutdown();
      damage(rootPage());

      await expect(openRepository({ sqlite: file })).rejects.toThrow(advice);
    });
  });

  it.each([
    ['', 'name a file, such as'],
    [':memory:', 'name a file: a database in memory'],
    ['sqlite:data/plants.db', 'be the path of a file, such as data/plants.db, without a scheme'],
    ['postgres://plants:secret@db.example.org/plants', 'be the path of a file'],
    ['package.json/plants.db', 'not name a file below'],
  ])('refuses the path %j, says why, and does not repeat it', async (path, why) => {
    const opening = openRepository({ sqlite: path });

    await expect(opening).rejects.toThrow(StoreOpenError);
    await expect(opening).rejects.toThrow(`PlantsModule: "sqlite" must ${why}`);
    await expect(opening).rejects.not.toThrow('secret');
    expect([':memory:', 'sqlite:', 'postgres:'].filter(fs.existsSync)).toEqual([]);
  });

  const { link, mkdir, writeFile } = fs.promises;
  it.each<[string, string, (path: string) => unknown]>([
    ['a folder', 'it is a directory', (path) => mkdir(path)],
    ['no database', 'file is not a database', (path) => writeFile(path, 'x'.repeat(10_000))],
    ['a pipe', 'it is not a regular file', (path) => execFileSync('mkfifo', [path])],
    [
      'one of two names of a file',
      'it has 2 names (hard links), and under each of them plants would be lost: remove the others. A symbolic link may lead to it',
      (path) => link(file, path),
    ],
    [
      'a database of another program with a table of the same name',
      'its table plants is not as schema version 0 has it',
      (path) => {
        execute(path, 'CREATE TABLE plants (anything)');
      },
    ],
  ])('does not open a path that is %s', async (_what, why, make) => {
    const path = join(folder, 'other');
    await make(path);

    const opening = openRepository({ sqlite: path });

    await expect(opening).rejects.toThrow(StoreOpenError);
    await expect(opening).rejects.toThrow(
      `PlantsModule: "sqlite" names the file ${path}, which cannot be used: ${why}.`,
    );
  });
});
