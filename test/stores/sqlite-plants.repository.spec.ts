import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Logger } from '@nestjs/common';
import { UnavailableError } from '../../src/plants';
import { SqlitePlantsRepository } from '../../src/plants/persistence/sqlite/sqlite-plants.repository';
import { sqliteMigrations } from '../../src/plants/persistence/sqlite/sqlite.migrations';
import { SqliteThread } from '../../src/plants/persistence/sqlite/sqlite.thread';
import { StoreOpenError } from '../../src/plants/persistence/store-open.error';
import { describeRepository } from './repository.contract';
import { makeFolder, removeFolder } from '../support/folder';
import { execute, integrity, query, readPlants } from '../support/sqlite';
import { until } from '../support/until';

describeRepository('SqlitePlantsRepository', async () => {
  const folder = makeFolder();
  const file = join(folder, 'plants.db');
  const repository = await SqlitePlantsRepository.open(file);
  const second = await SqlitePlantsRepository.open(file);
  return {
    repository,
    second,
    plants: () => readPlants(file),
    removePlants() {
      execute(file, 'DELETE FROM plants');
    },
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
  let logged: string[];
  beforeEach(async () => {
    logged = [];
    Logger.overrideLogger({
      log: (line: string) => logged.push(`info ${line}`),
      error: (line: string) => logged.push(`error ${line}`),
      warn: (line: string) => logged.push(`warn ${line}`),
    });
    folder = makeFolder();
    file = join(folder, 'deep', 'er', 'plants ?#%.db');
    repository = await SqlitePlantsRepository.open(file);
  });
  afterEach(async () => {
    await repository.onApplicationShutdown();
    removeFolder(folder);
  });

  const insert = (id: bigint) => repository.insert({ id, name: 'Fern' });

  /** Opens a connection that stays in the middle of a read. */
  function openReader(): DatabaseSync {
    const reader = new DatabaseSync(file);
    reader.exec('BEGIN');
    reader.prepare('SELECT * FROM plants').all();
    return reader;
  }

  async function waitForProbe(): Promise<void> {
    const probe = jest.spyOn(SqliteThread.prototype, 'probe');
    await until(() => probe.mock.calls.length > 0);
    await probe.mock.results[0]?.value;
    probe.mockRestore();
  }

  function makeBackup(): string {
    const backup = join(folder, 'backup.db');
    execute(file, `VACUUM INTO '${backup}'`);
    return backup;
  }

  function removeStore(): void {
    for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
  }

  /** The pages of a database that is closed, of 4096 bytes each. */
  function readPages(path: string): Buffer[] {
    const bytes = readFileSync(path);
    return Array.from({ length: bytes.length / 4096 }, (_, at) =>
      bytes.subarray(at * 4096, (at + 1) * 4096),
    );
  }

  const errors = () => logged.filter((line) => line.startsWith('error'));

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

  it('starts while another process reads', async () => {
    await insert(1n);
    const reader = openReader();

    const second = await SqlitePlantsRepository.open(file);

    expect(await second.insert({ id: 2n, name: 'Fern' })).toBe(true);
    expect(await insert(3n)).toBe(true);
    await second.onApplicationShutdown();
    reader.close();
  });

  it('recovers from a failure while another process reads', async () => {
    await insert(1n);
    const reader = openReader();
    for (const suffix of ['', '-wal', '-shm']) renameSync(file + suffix, `${file}.away${suffix}`);
    await expect(insert(2n)).rejects.toThrow(UnavailableError);
    for (const suffix of ['', '-wal', '-shm']) renameSync(`${file}.away${suffix}`, file + suffix);

    await until(() => repository.isReady());

    expect(await insert(2n)).toBe(true);
    reader.close();
  });

  it('is not ready while the file is missing', async () => {
    await insert(1n);
    for (const suffix of ['', '-wal', '-shm']) renameSync(file + suffix, `${file}.away${suffix}`);
    await expect(insert(2n)).rejects.toThrow(UnavailableError);

    await waitForProbe();

    expect(repository.isReady()).toBe(false);
    expect(existsSync(file)).toBe(false);
  });

  describe.each<[string, RegExp, () => void | Promise<void>]>([
    [
      'replaced by an empty file',
      /the file is empty: restore the database file/,
      () => {
        removeStore();
        writeFileSync(file, '');
      },
    ],
    [
      'replaced by an empty file beside its log',
      /the file is empty: restore the database file/,
      () => {
        rmSync(file);
        writeFileSync(file, '');
      },
    ],
    [
      'cut to nothing',
      /the database file was truncated: run `plant-store check --deep` and restore a backup/,
      () => {
        truncateSync(file);
      },
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
      'replaced by a file that is no database',
      /not the store that was in use before \(file is not a database\)/,
      () => {
        removeStore();
        writeFileSync(file, 'no database '.repeat(1000));
      },
    ],
    [
      'replaced by another store',
      /not the store that was in use before \(its identity differs\)/,
      async () => {
        removeStore();
        const other = await SqlitePlantsRepository.open(file);
        await other.onApplicationShutdown();
      },
    ],
    [
      'replaced by another store beside the log of the first',
      /-wal still belongs to the previous file/,
      async () => {
        const elsewhere = join(folder, 'other.db');
        const other = await SqlitePlantsRepository.open(elsewhere);
        await other.onApplicationShutdown();
        renameSync(elsewhere, file);
      },
    ],
  ])('whose file is %s', (_what, fault, replace) => {
    it('is not ready, changes nothing and says why, until its own store is back', async () => {
      await insert(1n);
      const backup = makeBackup();
      await replace();

      await expect(insert(2n)).rejects.toThrow(UnavailableError);
      const found = readFileSync(file);
      await expect(insert(2n)).rejects.toThrow(UnavailableError);
      await waitForProbe();
      await waitForProbe();
      expect(repository.isReady()).toBe(false);
      expect(readFileSync(file).equals(found)).toBe(true);
      expect(errors().filter((line) => fault.test(line))).toHaveLength(1);

      removeStore();
      renameSync(backup, file);
      await until(() => repository.isReady());
      expect(logged.at(-1)).toBe(`info ${file}: in use again.`);
      expect(await insert(1n)).toBe(false);
      expect(await insert(2n)).toBe(true);
    });
  });

  it('takes back its database with its log, after an empty file stood in its place', async () => {
    await insert(1n);
    renameSync(file, `${file}.away`);
    writeFileSync(file, '');
    await expect(insert(2n)).rejects.toThrow(UnavailableError);
    await waitForProbe();

    renameSync(`${file}.away`, file);
    await until(() => repository.isReady());

    expect(await insert(1n)).toBe(false);
  });

  it('does not begin a new database beside the log of one that is gone', async () => {
    await insert(1n);
    const log = readFileSync(`${file}-wal`);
    await repository.onApplicationShutdown();
    rmSync(file);
    writeFileSync(`${file}-wal`, log);

    await expect(SqlitePlantsRepository.open(file)).rejects.toThrow(
      /the file is missing, but its write-ahead log .*-wal has content/,
    );

    expect(readFileSync(`${file}-wal`).equals(log)).toBe(true);
    rmSync(`${file}-wal`);
    repository = await SqlitePlantsRepository.open(file);
  });

  describe('when a file becomes shorter', () => {
    it.each([0, 100, 8240])('refuses plants if the log was cut to %d bytes', async (size) => {
      for (let id = 1n; id <= 3n; id++) await insert(id);
      truncateSync(`${file}-wal`, size);

      await expect(insert(4n)).rejects.toThrow(UnavailableError);

      expect(errors()).toEqual([
        expect.stringMatching(/-wal was truncated, and plants were lost: run `/),
      ]);
    });

    it('accepts plants if another process has emptied the log', async () => {
      await insert(1n);
      execute(file, 'PRAGMA wal_checkpoint(TRUNCATE)');
      expect(statSync(`${file}-wal`).size).toBe(0);

      expect(await insert(2n)).toBe(true);
      expect(errors()).toEqual([]);
    });

    it('accepts plants if another process has emptied the log and written to it', async () => {
      for (let id = 1n; id <= 9n; id++) await insert(id);
      execute(file, 'PRAGMA wal_checkpoint(TRUNCATE); DELETE FROM plants WHERE id = 1');

      expect(await insert(1n)).toBe(true);
      expect(errors()).toEqual([]);
    });

    it('accepts plants if another process has shrunk the database', async () => {
      for (let id = 1n; id <= 9n; id++) {
        await repository.insert({ id, name: 'x'.repeat(100_000) });
      }
      execute(file, 'PRAGMA wal_checkpoint(TRUNCATE)');
      expect(await insert(10n)).toBe(true);
      execute(file, 'DELETE FROM plants; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)');
      expect(statSync(file).size).toBeLessThan(100_000);

      expect(await insert(1n)).toBe(true);
      expect(errors()).toEqual([]);
    });

    it('looks at the log where a symbolic link leads', async () => {
      await repository.onApplicationShutdown();
      const link = join(folder, 'link.db');
      symlinkSync(file, link);
      repository = await SqlitePlantsRepository.open(link);
      await insert(1n);
      const reader = openReader();
      const second = await SqlitePlantsRepository.open(link);
      await second.onApplicationShutdown();
      reader.close();
      truncateSync(`${file}-wal`);

      await expect(insert(2n)).rejects.toThrow(UnavailableError);
    });
  });

  describe('with a damaged table', () => {
    const PAGE = 4096;

    const rootPage = (): number => {
      const database = new DatabaseSync(file);
      const row = database
        .prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'plants'")
        .get();
      database.close();
      return Number(row?.rootpage);
    };

    /** Overwrites a page, and makes the other connections forget what they know of it. */
    function damage(page: number): void {
      execute(file, 'PRAGMA wal_checkpoint(TRUNCATE)');
      const descriptor = openSync(file, 'r+');
      writeSync(descriptor, Buffer.alloc(PAGE, 0xff), 0, PAGE, (page - 1) * PAGE);
      closeSync(descriptor);
      execute(file, 'CREATE TABLE other (x); DROP TABLE other');
    }

    const advice = /malformed: run `plant-store check --deep` and restore a backup/;

    async function expectUnreadyUntilRestored(id: bigint, backup: string): Promise<void> {
      await expect(insert(id)).rejects.toThrow(UnavailableError);
      await waitForProbe();
      await waitForProbe();
      expect(repository.isReady()).toBe(false);
      expect(errors()).toEqual([expect.stringMatching(advice)]);

      removeStore();
      renameSync(backup, file);
      await until(() => repository.isReady());
      expect(await insert(id)).toBe(true);
    }

    it('is not ready if the root page is damaged, and says once what to do', async () => {
      await insert(1n);
      const backup = makeBackup();
      damage(rootPage());

      await expectUnreadyUntilRestored(2n, backup);
    });

    it('is not ready if another page is damaged and was met', async () => {
      for (let id = 1n; id <= 50n; id++) await repository.insert({ id, name: 'x'.repeat(1000) });
      const backup = makeBackup();
      execute(file, 'PRAGMA wal_checkpoint(TRUNCATE)');
      // The right-most child of an interior page, https://sqlite.org/fileformat2.html#b_tree_pages.
      const last = readFileSync(file).readUInt32BE((rootPage() - 1) * PAGE + 8);
      damage(last);

      await expectUnreadyUntilRestored(51n, backup);
    });

    it('does not start', async () => {
      await insert(1n);
      await repository.onApplicationShutdown();
      damage(rootPage());

      await expect(SqlitePlantsRepository.open(file)).rejects.toThrow(advice);
    });
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

  it.each([':memory:', 'file::memory:', ''])(
    'refuses the path %j, which is no file',
    async (path) => {
      await expect(SqlitePlantsRepository.open(path)).rejects.toThrow(StoreOpenError);
      expect(existsSync(':memory:')).toBe(false);
    },
  );

  describe('on a file of the previous version', () => {
    let previous: string;
    beforeEach(() => {
      previous = join(folder, 'previous.db');
      execute(
        previous,
        `${sqliteMigrations[0]?.statements}; PRAGMA user_version = 1;
         WITH RECURSIVE ids (id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < 100000)
         INSERT INTO plants SELECT id, 'Fern', 'shade' FROM ids`,
      );
    });

    it('keeps the SHA-256 of a key', async () => {
      const key = '["name",null,"b\u00f6b","abc"]';
      const other = await SqlitePlantsRepository.open(previous);
      execute(
        previous,
        `INSERT INTO plants VALUES (0, 'Fern', NULL, x'${createHash('sha256').update(key).digest('hex')}')`,
      );

      expect(await other.insertOnce({ id: 0n, name: 'Fern' }, key)).toBe('replayed');
      await other.onApplicationShutdown();
    });

    it('adds the column for keys', async () => {
      const other = await SqlitePlantsRepository.open(previous);

      expect(await other.insertOnce({ id: 1n, name: 'Fern', tag: 'shade' }, 'ab')).toBe('taken');
      expect(await other.insertOnce({ id: 0n, name: 'Fern' }, 'ab')).toBe('created');
      expect(await other.insertOnce({ id: 0n, name: 'Fern' }, 'ab')).toBe('replayed');
      await other.onApplicationShutdown();
    });

    it('writes hardly a page, however large the table is', async () => {
      const before = readPages(previous);

      await (await SqlitePlantsRepository.open(previous)).onApplicationShutdown();

      const written = readPages(previous).filter((page, at) => !before[at]?.equals(page));
      expect(before.length).toBeGreaterThan(400);
      // The first page, which has the schema, and the new table for the identity.
      expect(written).toHaveLength(2);
    });

    it('reads no row', async () => {
      // The statement that adds a column to a table would find this row and fail.
      const database = new DatabaseSync(previous, { defensive: false });
      const redefine = (from: string, to: string): void => {
        database.exec(
          `PRAGMA writable_schema = ON;
           UPDATE sqlite_schema SET sql = replace(sql, '${from}', '${to}') WHERE name = 'plants';
           PRAGMA writable_schema = RESET`,
        );
      };
      redefine('TEXT NOT NULL', 'TEXT');
      database.exec('UPDATE plants SET name = NULL WHERE id = 50000');
      redefine('name TEXT', 'name TEXT NOT NULL');
      expect(() => {
        database.exec('ALTER TABLE plants ADD COLUMN idempotency_key BLOB');
      }).toThrow('NOT NULL constraint failed');
      database.close();

      const other = await SqlitePlantsRepository.open(previous);

      expect(other.isReady()).toBe(true);
      await other.onApplicationShutdown();
    });

    it('has the same schema as a new file afterwards, and no fault', async () => {
      const schema = (path: string): object[] =>
        query(path, 'SELECT type, name, sql FROM sqlite_schema ORDER BY name');

      await (await SqlitePlantsRepository.open(previous)).onApplicationShutdown();

      expect(schema(previous)).toEqual(schema(file));
      expect(integrity(previous)).toBe('ok');
    });

    it('keeps a column that an operator has added', async () => {
      execute(previous, "ALTER TABLE plants ADD COLUMN note TEXT; UPDATE plants SET note = 'a'");

      const other = await SqlitePlantsRepository.open(previous);

      expect(await other.insertOnce({ id: 0n, name: 'Fern' }, 'ab')).toBe('created');
      expect(query(previous, 'SELECT DISTINCT note FROM plants WHERE id > 0')).toEqual([
        { note: 'a' },
      ]);
      await other.onApplicationShutdown();
    });

    it('is noticed by a connection that was open before', async () => {
      const open = new DatabaseSync(previous);
      open.prepare('SELECT * FROM plants LIMIT 1').get();

      await (await SqlitePlantsRepository.open(previous)).onApplicationShutdown();

      expect(open.prepare('SELECT idempotency_key FROM plants LIMIT 1').get()).toEqual({
        idempotency_key: null,
      });
      open.close();
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
        identity: undefined,
        busyTimeout: 1000,
        migrations: sqliteMigrations.slice(0, 1),
      });

      await expect(old).rejects.toThrow(
        `the database has schema version ${sqliteMigrations.length}, but this program supports only up to 1: run a newer version of the program`,
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
