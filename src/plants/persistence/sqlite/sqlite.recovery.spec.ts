import { copyFileSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { useFolder } from '../../../../test/support/folder';
import { run } from '../../../../test/support/run';
import { query } from '../../../../test/support/sqlite';
import {
  closeWithoutCheckpoint,
  makeWalDurable,
  openCheckpointBlocker,
  tryTruncateWal,
} from './sqlite.recovery';
import { migrate } from './sqlite.schema';

/** Prints 1 if it cannot truncate the WAL, and fails if it cannot lock the file exclusively. */
const OTHER_PROCESS = `
  const { DatabaseSync } = require('node:sqlite');
  const database = new DatabaseSync(process.argv[1]);
  console.log(database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get().busy);
  database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');`;

describe('sqlite.recovery', () => {
  const folder = useFolder();
  const file = join(folder, 'plants.db');
  const walPath = `${file}-wal`;
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

  it('makeWalDurable copies the WAL to the database file and truncates the WAL', () => {
    makeWalDurable(database, walPath);

    const copy = join(folder, 'copy.db');
    copyFileSync(file, copy);
    expect(statSync(walPath).size).toBe(0);
    expect(query(copy, 'SELECT id, name FROM plants')).toEqual(plants);
  });

  it('makeWalDurable rewrites the same WAL while another connection reads', () => {
    other.exec('BEGIN; SELECT * FROM plants');
    const before = readFileSync(walPath);
    utimesSync(walPath, 0, 0);

    makeWalDurable(database, walPath);

    expect(statSync(walPath).mtimeMs).toBeGreaterThan(0);
    expect(readFileSync(walPath).equals(before)).toBe(true);
    expect(database.prepare('PRAGMA busy_timeout').get()).toEqual({ timeout: 1000 });
    expect(query(file, 'SELECT id, name FROM plants')).toEqual(plants);
  });

  it('makeWalDurable releases no locks when it rewrites the WAL', async () => {
    other.exec('BEGIN; SELECT * FROM plants');

    makeWalDurable(database, walPath);

    const { stdout, stderr } = await run(process.execPath, ['-e', OTHER_PROCESS, file]);
    expect(stdout).toBe('1\n');
    expect(stderr).toContain('Error: database is locked');
  });

  it('BEGIN IMMEDIATE keeps other connections from changing the WAL', () => {
    const { size } = statSync(walPath);
    database.exec('BEGIN IMMEDIATE');

    expect(other.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()).toMatchObject({ busy: 1 });
    expect(() => {
      other.exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')");
    }).toThrow('database is locked');
    expect(statSync(walPath).size).toBe(size);
  });

  it('closeWithoutCheckpoint leaves the database file and the WAL unchanged', () => {
    const blocker = openCheckpointBlocker(file);
    other.close();
    const [fileBefore, walBefore] = [readFileSync(file), readFileSync(walPath)];

    closeWithoutCheckpoint(database, blocker);

    expect(readFileSync(file).equals(fileBefore)).toBe(true);
    expect(readFileSync(walPath).equals(walBefore)).toBe(true);
    database = new DatabaseSync(file);
    expect(database.prepare('SELECT count(*) AS count FROM plants').get()).toEqual({ count: 1 });
    other = new DatabaseSync(file);
  });

  it('tryTruncateWal works while the checkpoint blocker is open', () => {
    const blocker = openCheckpointBlocker(file);

    expect(tryTruncateWal(database)).toBe(true);

    blocker.close();
  });
});
