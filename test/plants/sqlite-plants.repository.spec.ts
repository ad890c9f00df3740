/** Runs the contract of a repository on SQLite, and what it does not say: files, locks, damage, the thread. */
import fs from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { PlantStoreError, UnavailableError } from '../../src/plants';
import type { DatabasePlantsRepository } from '../../src/plants/store/database-plants.repository';
import { openRepository } from '../../src/plants/store/stores';
import { OptionError } from '../../src/plants/errors/operator.error';
import { describeRepository, type StoreUnderTest } from './repository.contract';
import { errorBodies } from '../support/error-bodies';
import { makeFolder, removeFolder } from '../support/folder';
import { useLog } from '../support/log';
import { describeAsRoot } from '../support/run';
import { execute, lockDatabase, query } from '../support/sqlite';
import { SqliteStore } from '../support/stores';
import { until } from '../support/until';

const CHANGED =
  'the database file or its write-ahead log was moved, replaced or deleted. Stop the service, put the files back or run `plant-store restore BACKUP`, and start it again';

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

describeRepository('the SQLite repository', openStore);

describe('the SQLite repository', () => {
  let folder: string;
  let file: string;
  let repository: DatabasePlantsRepository;
  const { errors } = useLog();
  beforeEach(async () => {
    folder = makeFolder();
    file = join(folder, 'deep', 'er', 'plants ?#%.db');
    repository = await openRepository({ sqlite: file });
  });
  afterEach(async () => {
    await repository.onApplicationShutdown();
    removeFolder(folder);
  });

  /** Creates a SQLite file without plants. */
  async function createStore(path: string): Promise<string> {
    await (await openRepository({ sqlite: path })).onApplicationShutdown();
    return path;
  }

  const insert = (id: bigint) => repository.insert({ id, name: 'Fern' });
  const expectRejected = (id: bigint) => expect(insert(id)).rejects.toThrow(UnavailableError);

  const suffixes = ['', '-wal', '-shm'];

  /** Returns the content of the database file and of the WAL. */
  const contents = () =>
    [file, `${file}-wal`].map((each) => fs.existsSync(each) && fs.readFileSync(each, 'latin1'));

  function makeBackup(): string {
    const backup = join(folder, 'backup.db');
    execute(file, `VACUUM INTO '${backup}'`);
    return backup;
  }

  function removeStore(): void {
    for (const suffix of suffixes) fs.rmSync(file + suffix, { force: true });
  }

  it('is not ready while another process writes, and recovers without traffic', async () => {
    const writer = lockDatabase(file);
    expect(repository.isReady()).toBe(true);

    await expectRejected(2n);
    expect(repository.isReady()).toBe(false);
    expect(repository.currentFailure()?.message).toBe(`${file}: database is locked.`);

    writer.close();
    await until(() => repository.isReady());
    expect(repository.currentFailure()).toBeUndefined();
    expect(await insert(2n)).toBe('created');
  });

  it('measures the WAL', async () => {
    await insert(1n);

    expect(await repository.logBytes()).toBe(fs.statSync(`${file}-wal`).size);
    expect(await repository.logBytes()).toBeGreaterThan(0);
    await repository.onApplicationShutdown();
    expect(await repository.logBytes()).toBe(0);
  });

  it('limits the size of a WAL that has grown during a long read', async () => {
    const logSize = () => fs.statSync(`${file}-wal`).size;
    const reader = new DatabaseSync(file);
    reader.exec('BEGIN; SELECT * FROM plants');
    let nextId = 1n;
    while (logSize() < 2 ** 26) {
      await repository.insert({ id: nextId++, name: 'x'.repeat(2 ** 20) });
    }
    reader.close();

    await until(async () => (await insert(nextId++)) === 'created' && logSize() <= 2 ** 25);

    expect(logSize()).toBeGreaterThan(0);
  });

  it('is not ready until it is opened again, and logs once what to do, when its file is replaced', async () => {
    await insert(1n);
    const backup = makeBackup();
    fs.renameSync(await createStore(join(folder, 'other.db')), file);
    const found = contents();

    await expectRejected(2n);
    await expectRejected(3n);
    expect(repository.isReady()).toBe(false);
    expect(errors()).toEqual([`error ${file}: ${CHANGED}.`]);
    await repository.onApplicationShutdown();
    expect(contents()).toEqual(found);

    removeStore();
    fs.renameSync(backup, file);
    repository = await openRepository({ sqlite: file });
    expect(await insert(1n)).toBe('taken');
    expect(await insert(2n)).toBe('created');
  });

  it('does not checkpoint into a replaced file on close', async () => {
    await insert(1n);
    fs.renameSync(await createStore(join(folder, 'other.db')), file);
    const found = contents();

    await repository.onApplicationShutdown();

    expect(contents()).toEqual(found);
  });

  it('follows a symbolic link to the database file and its WAL', async () => {
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

  it('creates directories and files only for its own user, and keeps the mode of an existing file', async () => {
    const modeOf = (path: string) => fs.statSync(path).mode & 0o777;
    const existing = join(folder, 'existing.db');
    fs.writeFileSync(existing, '', { mode: 0o640 });
    await createStore(existing);

    expect(['deep', 'deep/er'].map((each) => modeOf(join(folder, each)))).toEqual([0o700, 0o700]);
    expect(query(file, 'PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    expect(suffixes.map((suffix) => modeOf(file + suffix))).toEqual(Array(3).fill(0o600));
    expect(modeOf(existing)).toBe(0o640);
  });

  // Only root can give a file to another user.
  describeAsRoot(() => {
    it('gives all files that root creates to the owner of the directory', async () => {
      const directory = join(folder, 'owned');
      const path = join(directory, 'plants.db');
      fs.mkdirSync(directory);
      fs.chownSync(directory, 10_001, 10_002);

      const second = await openRepository({ sqlite: path });

      const owners = suffixes.map((suffix) => {
        const { uid, gid } = fs.statSync(path + suffix);
        return [uid, gid];
      });
      expect(owners).toEqual(Array(3).fill([10_001, 10_002]));
      await second.onApplicationShutdown();
    });
  });

  it('does not create a database next to the WAL of a missing one', async () => {
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

  it('does not open a file whose WAL has a hole, until the process with its index has ended', async () => {
    for (let id = 1n; id <= 9n; id++) await insert(id);
    const copy = join(folder, 'copy.db');
    for (const suffix of suffixes) fs.copyFileSync(file + suffix, copy + suffix);
    // A session that only reads does not copy the WAL when it closes.
    const other = new DatabaseSync(copy, { readOnly: true });
    const count = () => other.prepare('SELECT count(*) AS count FROM plants').get()?.count;
    expect(count()).toBe(9);
    const descriptor = fs.openSync(`${copy}-wal`, 'r+');
    // A page that is lost, in the middle.
    fs.writeSync(descriptor, Buffer.alloc(4096), 0, 4096, 4096 * 5);
    fs.closeSync(descriptor);
    const found = fs.readFileSync(`${copy}-wal`);

    await expect(openRepository({ sqlite: copy })).rejects.toThrow(
      /its write-ahead log can be read only up to frame \d+ of \d+, because a sync has failed\. .* end all other processes/,
    );

    expect(fs.readFileSync(`${copy}-wal`).equals(found)).toBe(true);
    other.close();
    const reopened = await openRepository({ sqlite: copy });
    expect(await reopened.insert({ id: 100n, name: 'Fern' })).toBe('created');
    await reopened.onApplicationShutdown();
  });

  it.each([
    [
      'a REAL id',
      'id REAL PRIMARY KEY, name TEXT NOT NULL, tag TEXT, idempotency_key BLOB',
      /id .* INTEGER PRIMARY KEY, but is REAL PRIMARY KEY/,
    ],
    [
      'an id that is no key',
      'id INTEGER, name TEXT NOT NULL, tag TEXT, idempotency_key BLOB',
      /id .* INTEGER PRIMARY KEY, but is INTEGER/,
    ],
    [
      'a name that may be missing',
      'id INTEGER PRIMARY KEY, name TEXT, tag TEXT, idempotency_key BLOB',
      /name .* TEXT NOT NULL, but is TEXT/,
    ],
    [
      'no tag',
      'id INTEGER PRIMARY KEY, name TEXT NOT NULL, idempotency_key BLOB',
      /tag .* TEXT, but is missing/,
    ],
    [
      'a key of type TEXT',
      'id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT, idempotency_key TEXT',
      /idempotency_key .* BLOB, but is TEXT/,
    ],
  ])('does not open a file whose table was rebuilt with %s', async (_what, columns, reason) => {
    await repository.onApplicationShutdown();
    execute(file, `DROP TABLE plants; CREATE TABLE plants (${columns})`);

    await expect(openRepository({ sqlite: file })).rejects.toThrow(reason);
  });

  it('opens a file that a restore, killed before its end, has left under two names', async () => {
    await insert(1n);
    await repository.onApplicationShutdown();
    fs.linkSync(file, `${file}.before-20261129012345678`);

    repository = await openRepository({ sqlite: file });

    expect(await insert(1n)).toBe('taken');
  });

  it('opens a file whose table has further columns', async () => {
    await repository.onApplicationShutdown();
    execute(file, 'ALTER TABLE plants ADD COLUMN extra TEXT');
    repository = await openRepository({ sqlite: file });

    expect(await insert(1n)).toBe('created');
  });

  describe('with a constraint or trigger of the operator', () => {
    const insertNamed = (id: bigint, name: string) => repository.insert({ id, name });

    it.each([
      [
        'a unique index',
        'CREATE UNIQUE INDEX u ON plants (name)',
        /UNIQUE constraint failed: plants.name/,
      ],
      [
        'a trigger that raises an error',
        "CREATE TRIGGER t BEFORE INSERT ON plants WHEN new.id = 2 BEGIN SELECT RAISE(ABORT, 'no ferns'); END",
        /no ferns/,
      ],
      [
        'a trigger that ignores the plant',
        'CREATE TRIGGER t BEFORE INSERT ON plants WHEN new.id = 2 BEGIN SELECT RAISE(IGNORE); END',
        /a trigger .* ignored a plant, which is not supported/,
      ],
    ])('rejects only the plant that %s rejects, with the reason', async (_what, sql, reason) => {
      execute(file, sql);
      await insertNamed(1n, 'Fern');

      const inserted = await Promise.allSettled([insertNamed(2n, 'Fern'), insertNamed(3n, 'Moss')]);

      expect(inserted.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
      const { reason: error } = inserted[0] as { reason: PlantStoreError };
      expect(error.body).toEqual(errorBodies.internal);
      expect((error.cause as Error).message).toMatch(reason);
      expect([repository.isReady(), errors()]).toEqual([true, []]);
    });

    it('is not ready while a trigger rejects every plant', async () => {
      execute(
        file,
        "CREATE TRIGGER t BEFORE INSERT ON plants BEGIN SELECT RAISE(ABORT, 'closed'); END",
      );

      await expect(insert(1n)).rejects.toThrow(PlantStoreError);

      await until(() => !repository.isReady());
      expect(errors()).toEqual([`error ${file}: closed.`]);
      execute(file, 'DROP TRIGGER t');
      await until(() => repository.isReady());
    });
  });

  it('does not open a damaged database, and reports what to do', async () => {
    execute(file, 'PRAGMA wal_checkpoint(TRUNCATE)');
    const [table] = query(file, "SELECT rootpage FROM sqlite_schema WHERE name = 'plants'");
    await repository.onApplicationShutdown();
    const descriptor = fs.openSync(file, 'r+');
    fs.writeSync(
      descriptor,
      Buffer.alloc(4096, 0xff),
      0,
      4096,
      (Number(table?.rootpage) - 1) * 4096,
    );
    fs.closeSync(descriptor);

    await expect(openRepository({ sqlite: file })).rejects.toThrow(
      /malformed: run `plant-store check --deep`; to repair it, .* `plant-store restore BACKUP`/,
    );
  });

  it.each([
    ['', 'name a file, such as'],
    [':memory:', 'be the path of a file, such as data/plants.db, without a scheme'],
    ['sqlite:data/plants.db', 'be the path of a file, such as data/plants.db, without a scheme'],
    ['postgres://plants:secret@db.example.org/plants', 'be the path of a file'],
  ])('rejects the path %j with the reason, and does not repeat the path', async (path, why) => {
    const opening = openRepository({ sqlite: path });

    await expect(opening).rejects.toThrow(OptionError);
    await expect(opening).rejects.toThrow(`sqlite must ${why}`);
    await expect(opening).rejects.not.toThrow('secret');
    expect([':memory:', 'sqlite:', 'postgres:'].filter(fs.existsSync)).toEqual([]);
  });

  async function expectNotOpened(path: string, why: string): Promise<void> {
    const opening = openRepository({ sqlite: path });

    await expect(opening).rejects.toThrow(OptionError);
    await expect(opening).rejects.toThrow(
      `sqlite names the file ${path}, which cannot be used: ${why}.`,
    );
  }

  const { link, mkdir, writeFile } = fs.promises;
  it.each<[string, string, (path: string) => unknown]>([
    ['a folder', 'it is not a regular file', (path) => mkdir(path)],
    ['no database', 'file is not a database', (path) => writeFile(path, 'x'.repeat(10_000))],
    [
      'one of two names of a file',
      'it has 2 hard links. Opening it under more than one name loses plants: delete the other links (symbolic links are fine)',
      (path) => link(file, path),
    ],
    [
      'a database of another program with a table of the same name',
      'it has a table plants without a schema version. Another program created it, or `.dump` of sqlite3, which loses the version: copy a store by `plant-store backup` instead',
      (path) => {
        execute(path, 'CREATE TABLE plants (anything)');
      },
    ],
  ])('does not open a path that is %s', async (_what, why, make) => {
    const path = join(folder, 'other');
    await make(path);

    await expectNotOpened(path, why);
  });
});
