import { copyFileSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { useFolder } from '../../../../test/support/folder';
import { run } from '../../../../test/support/run';
import { query } from '../../../../test/support/sqlite';
import { closeAndKeepLog, emptyLog, makeLogDurable, openLogKeeper } from './sqlite.recovery';
import { migrate } from './sqlite.schema';

/** Prints 1 for a log that another process cannot empty, and fails when that gets no exclusive use of the file. */
const OTHER_PROCESS = `
  const { DatabaseSync } = require('node:sqlite');
  const database = new DatabaseSync(process.argv[1]);
  console.log(database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get().busy);
  database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');`;

describe('the recovery from a failure', () => {
  const folder = useFolder();
  const file = join(folder, 'plants.db');
  const log = `${file}-wal`;
  let database: DatabaseSync;
  let other: DatabaseSync;
  beforeEach(() => {
    database = new DatabaseSync(file, { timeout: 1000 });
    database.exec('PRAGMA journal_mode = WAL');
    migrate(database);
    database.exec("INSERT INTO plants (id, name) VALUES (1, 'Fern')");
    other = new DatabaseSync(file, { timeout: 0 });
  });
  afterEach(() => {
    other.close();
    database.close();
  });

  const plants = [{ id: 1, name: 'Fern' }];

  it('writes all of the log to the database file and empties the log', () => {
    makeLogDurable(database, log);

    const copy = join(folder, 'copy.db');
    copyFileSync(file, copy);
    expect(statSync(log).size).toBe(0);
    expect(query(copy, 'SELECT id, name FROM plants')).toEqual(plants);
  });

  it('writes the same log again while somebody reads', () => {
    other.exec('BEGIN; SELECT * FROM plants');
    const before = readFileSync(log);
    utimesSync(log, 0, 0);

    makeLogDurable(database, log);

    expect(statSync(log).mtimeMs).toBeGreaterThan(0);
    expect(readFileSync(log).equals(before)).toBe(true);
    expect(database.prepare('PRAGMA busy_timeout').get()).toEqual({ timeout: 1000 });
    expect(query(file, 'SELECT id, name FROM plants')).toEqual(plants);
  });

  it('drops no lock of its process by that', async () => {
    other.exec('BEGIN; SELECT * FROM plants');

    makeLogDurable(database, log);

    const { stdout, stderr } = await run(process.execPath, ['-e', OTHER_PROCESS, file]);
    expect(stdout).toBe('1\n');
    expect(stderr).toContain('Error: database is locked');
  });

  it('is disturbed by no other connection once it has begun to write', () => {
    const { size } = statSync(log);
    database.exec('BEGIN IMMEDIATE');

    expect(other.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()).toMatchObject({ busy: 1 });
    expect(() => {
      other.exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')");
    }).toThrow('database is locked');
    expect(statSync(log).size).toBe(size);
  });

  it('leaves file and log as they are when the last connection closes before its keeper', () => {
    const keeper = openLogKeeper(file);
    other.close();
    const [fileBefore, logBefore] = [readFileSync(file), readFileSync(log)];

    closeAndKeepLog(database, keeper);

    expect(readFileSync(file).equals(fileBefore)).toBe(true);
    expect(readFileSync(log).equals(logBefore)).toBe(true);
    database = new DatabaseSync(file);
    expect(database.prepare('SELECT count(*) AS count FROM plants').get()).toEqual({ count: 1 });
    other = new DatabaseSync(file);
  });

  it('keeps no other connection from emptying the log', () => {
    const keeper = openLogKeeper(file);

    expect(emptyLog(database)).toBe(true);

    keeper.close();
  });
});
