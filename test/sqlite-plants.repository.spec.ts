import { existsSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { UnavailableError } from '../src/plants';
import { SqlitePlantsRepository } from '../src/plants/persistence/sqlite/sqlite-plants.repository';
import { sqliteMigrations } from '../src/plants/persistence/sqlite/sqlite.migrations';
import { SqliteThread } from '../src/plants/persistence/sqlite/sqlite.thread';
import { StoreOpenError } from '../src/plants/persistence/store-open.error';
import { describeRepository } from './repository.contract';
import { makeFolder, removeFolder } from './support/folder';
import { execute, readPlants } from './support/sqlite';
import { until } from './support/until';

describeRepository('SqlitePlantsRepository', async () => {
  const folder = makeFolder();
  const file = join(folder, 'plants.db');
  const repository = await SqlitePlantsRepository.open(file);
  const second = await SqlitePlantsRepository.open(file);
  return {
    repository,
    second,
    plants: () => readPlants(file),
    async close() {
      await repository.onApplicationShutdown();
      await second.onApplicationShutdown();
      removeFolder(folder);
    },
  };
});

describe('SqlitePlantsRepository', () => {
  let folder: string;
  let file: string;
  let repository: SqlitePlantsRepository;
  beforeEach(async () => {
    folder = makeFolder();
    file = join(folder, 'deep', 'er', 'plants ?#%.db');
    repository = await SqlitePlantsRepository.open(file);
  });
  afterEach(async () => {
    await repository.onApplicationShutdown();
    removeFolder(folder);
  });

  const insert = (id: bigint) => repository.insert({ id, name: 'Fern' });

  it('creates the folder and the file', () => {
    expect(statSync(file).isFile()).toBe(true);
  });

  it('finds its plants after it was closed and opened again', async () => {
    await insert(1n);
    await repository.onApplicationShutdown();

    repository = await SqlitePlantsRepository.open(file);

    expect(await insert(1n)).toBe(false);
  });

  it('commits the accepted plants before it closes', async () => {
    const inserts = Array.from({ length: 100 }, (_, at) => insert(BigInt(at)));

    await repository.onApplicationShutdown();

    expect(await Promise.all(inserts)).toEqual(Array(100).fill(true));
    expect(readPlants(file)).toHaveLength(100);
  });

  it('refuses plants once it is closing', async () => {
    const closing = repository.onApplicationShutdown();

    await expect(insert(1n)).rejects.toThrow(UnavailableError);
    await closing;
  });

  it('uses a write-ahead log', () => {
    const database = new DatabaseSync(file);
    expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    database.close();
  });

  it('refuses plants while another process holds the lock, and accepts them afterwards', async () => {
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');

    await expect(insert(1n)).rejects.toThrow(UnavailableError);
    other.exec('COMMIT');
    other.close();

    expect(await insert(1n)).toBe(true);
  });

  it('refuses plants while the file is missing, and accepts them when it is back', async () => {
    await insert(1n);
    for (const suffix of ['', '-wal', '-shm']) renameSync(file + suffix, `${file}.away${suffix}`);

    await expect(insert(2n)).rejects.toThrow(UnavailableError);
    await expect(insert(2n)).rejects.toThrow(UnavailableError);
    for (const suffix of ['', '-wal', '-shm']) {
      if (statSync(`${file}.away${suffix}`, { throwIfNoEntry: false })) {
        renameSync(`${file}.away${suffix}`, file + suffix);
      }
    }

    expect(await insert(2n)).toBe(true);
    expect(readPlants(file).map(({ id }) => id)).toEqual([1n, 2n]);
  });

  it('is not ready after a refusal, and recovers without traffic once the cause is gone', async () => {
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    expect(repository.isReady()).toBe(true);

    await expect(insert(1n)).rejects.toThrow(UnavailableError);

    expect(repository.isReady()).toBe(false);
    other.exec('COMMIT');
    other.close();
    await until(() => repository.isReady());
    expect(await insert(1n)).toBe(true);
  });

  it('becomes ready again after one write, even while another process reads', async () => {
    await insert(1n);
    const reader = new DatabaseSync(file);
    reader.exec('BEGIN; SELECT * FROM plants');
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    await expect(insert(2n)).rejects.toThrow(UnavailableError);
    other.close();

    await until(() => repository.isReady());

    expect(await insert(2n)).toBe(true);
    reader.close();
  });

  it('does not start while another process keeps the log from being emptied', async () => {
    await insert(1n);
    const reader = new DatabaseSync(file);
    reader.prepare('BEGIN').run();
    reader.prepare('SELECT * FROM plants').all();

    await expect(SqlitePlantsRepository.open(file)).rejects.toThrow(
      /cannot be used: .*another process is reading the database/,
    );
    reader.close();
  });

  it('is not ready while the file is missing', async () => {
    await insert(1n);
    for (const suffix of ['', '-wal', '-shm']) renameSync(file + suffix, `${file}.away${suffix}`);
    const probe = jest.spyOn(SqliteThread.prototype, 'probe');
    await expect(insert(2n)).rejects.toThrow(UnavailableError);

    // Wait for a probe.
    await until(() => probe.mock.calls.length > 0);
    await probe.mock.results[0]?.value;
    probe.mockRestore();

    expect(repository.isReady()).toBe(false);
    expect(existsSync(file)).toBe(false);
  });

  it('notices that the file was replaced', async () => {
    await insert(1n);
    const elsewhere = join(folder, 'other.db');
    const other = await SqlitePlantsRepository.open(elsewhere);
    await other.onApplicationShutdown();
    renameSync(elsewhere, file);

    await expect(insert(2n)).rejects.toThrow(UnavailableError);
    expect(await insert(2n)).toBe(true);

    expect(readPlants(file).map(({ id }) => id)).toContain(2n);
  });

  it('ends a page early when texts are long, to bound its memory', async () => {
    const name = 'x'.repeat(2 ** 19);
    for (let id = 0n; id < 10n; id++) await repository.insert({ id, name });

    expect(await repository.page(undefined, 10)).toHaveLength(3);
  });

  it('migrates once when several repositories open an empty file at the same time', async () => {
    const fresh = join(folder, 'fresh.db');

    const repositories = await Promise.all(
      Array.from({ length: 4 }, () => SqlitePlantsRepository.open(fresh)),
    );
    const inserted = await Promise.all(
      repositories.map((each) => each.insert({ id: 1n, name: 'Fern' })),
    );
    await Promise.all(repositories.map((each) => each.onApplicationShutdown()));

    expect(inserted.filter(Boolean)).toHaveLength(1);
  });

  describe('on a file of the previous version', () => {
    let previous: string;
    beforeEach(() => {
      previous = join(folder, 'previous.db');
      execute(
        previous,
        `${sqliteMigrations[0]}; PRAGMA user_version = 1;
         WITH RECURSIVE ids (id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < 100000)
         INSERT INTO plants SELECT id, 'Fern', 'shade' FROM ids`,
      );
    });

    it('adds the column for keys', async () => {
      const other = await SqlitePlantsRepository.open(previous);

      expect(await other.insertOnce({ id: 1n, name: 'Fern', tag: 'shade' }, 'ab')).toBe('taken');
      expect(await other.insertOnce({ id: 0n, name: 'Fern' }, 'ab')).toBe('created');
      expect(await other.insertOnce({ id: 0n, name: 'Fern' }, 'ab')).toBe('replayed');
      await other.onApplicationShutdown();
    });

    it('migrates once when several repositories open it at the same time', async () => {
      const repositories = await Promise.all(
        Array.from({ length: 4 }, () => SqlitePlantsRepository.open(previous)),
      );
      const insertions = await Promise.all(
        repositories.map((each) => each.insertOnce({ id: 0n, name: 'Fern' }, 'ab')),
      );
      await Promise.all(repositories.map((each) => each.onApplicationShutdown()));

      expect(insertions.toSorted()).toEqual(['created', 'replayed', 'replayed', 'replayed']);
    });

    it('is refused to the previous program afterwards, in a clear sentence', async () => {
      await (await SqlitePlantsRepository.open(previous)).onApplicationShutdown();

      const old = SqliteThread.start({
        path: previous,
        create: false,
        busyTimeout: 1000,
        migrations: sqliteMigrations.slice(0, 1),
      });

      await expect(old).rejects.toThrow(
        `the database has schema version ${sqliteMigrations.length}; this program knows 1`,
      );
    });
  });

  it.each([
    ['a folder', () => folder],
    ['inside a file', () => join(file, 'plants.db')],
    [
      'not a database',
      () => {
        const path = join(folder, 'text');
        writeFileSync(path, 'no database '.repeat(1000));
        return path;
      },
    ],
    [
      'of a newer version',
      () => {
        const path = join(folder, 'newer.db');
        execute(path, 'PRAGMA user_version = 1000');
        return path;
      },
    ],
    [
      'a database of another program with a table of the same name',
      () => {
        const path = join(folder, 'other.db');
        execute(path, 'CREATE TABLE plants (anything)');
        return path;
      },
    ],
  ])('does not open a path that is %s', async (_what, makePath) => {
    const path = makePath();

    await expect(SqlitePlantsRepository.open(path)).rejects.toThrow(StoreOpenError);
    await expect(SqlitePlantsRepository.open(path)).rejects.toThrow(path);
  });
});
