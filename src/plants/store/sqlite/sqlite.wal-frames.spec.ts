import { copyFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeFolder, removeFolder } from '../../../../test/support/folder';
import { countReadableFrames } from './sqlite.wal-frames';

const HEADER_BYTES = 32;
const PAGE_BYTES = 4096;
const FRAME_BYTES = 24 + PAGE_BYTES;
const BIG_ENDIAN_MAGIC = 0x377f0683;

let folder: string;
let file: string;
let wal: string;
let database: DatabaseSync;
beforeEach(() => {
  folder = makeFolder();
  file = join(folder, 'plants.db');
  wal = `${file}-wal`;
  database = new DatabaseSync(file);
  database.exec('PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0');
  database.exec('CREATE TABLE t (a TEXT)');
});
afterEach(() => {
  database.close();
  removeFolder(folder);
});

/** Commits transactions of several pages each. */
function write(transactions: number): void {
  for (let count = 0; count < transactions; count++) {
    database.prepare('INSERT INTO t VALUES (?)').run('x'.repeat(3 * PAGE_BYTES));
  }
}

/** The number of frames that SQLite considers a part of the log. */
function countFrames(): number {
  return Number(database.prepare('PRAGMA wal_checkpoint(NOOP)').get()?.log);
}

/** Changes a log into one of a big-endian machine. SQLite reads both. */
function toBigEndian(log: Buffer): Buffer {
  let first = 0;
  let second = 0;
  const add = (content: Buffer): void => {
    for (let at = 0; at < content.length; at += 8) {
      first = (first + content.readUInt32BE(at) + second) >>> 0;
      second = (second + content.readUInt32BE(at + 4) + first) >>> 0;
    }
  };
  const writeChecksum = (at: number): void => {
    log.writeUInt32BE(first, at);
    log.writeUInt32BE(second, at + 4);
  };
  log.writeUInt32BE(BIG_ENDIAN_MAGIC, 0);
  add(log.subarray(0, 24));
  writeChecksum(24);
  for (let at = HEADER_BYTES; at < log.length; at += FRAME_BYTES) {
    add(log.subarray(at, at + 8));
    add(log.subarray(at + 24, at + FRAME_BYTES));
    writeChecksum(at + 16);
  }
  return log;
}

describe('countReadableFrames', () => {
  it('counts the frames of a log that SQLite wrote', () => {
    write(5);

    expect(countFrames()).toBeGreaterThan(15);
    expect(countReadableFrames(wal)).toBe(countFrames());
  });

  it('counts the frames of a log with big-endian checksums', () => {
    write(5);
    const copy = join(folder, 'copy.db');
    copyFileSync(file, copy);
    writeFileSync(`${copy}-wal`, toBigEndian(readFileSync(wal)));

    expect(countReadableFrames(`${copy}-wal`)).toBe(countFrames());
    const reader = new DatabaseSync(copy);
    expect(reader.prepare('SELECT count(*) AS count FROM t').get()).toEqual({ count: 5 });
    reader.close();
  });

  it('counts only the new frames of a log that SQLite has restarted', () => {
    write(5);
    const before = countFrames();
    database.exec('PRAGMA wal_checkpoint(RESTART)');
    write(1);

    expect(statSync(wal).size).toBe(HEADER_BYTES + before * FRAME_BYTES);
    expect(countFrames()).toBeLessThan(before);
    expect(countReadableFrames(wal)).toBe(countFrames());
  });

  it('does not count a transaction whose last frame is torn', () => {
    write(4);
    const before = countFrames();
    write(1);
    truncateSync(wal, statSync(wal).size - 100);

    expect(countReadableFrames(wal)).toBe(before);
  });

  it('does not count the frames of a transaction that has not ended', () => {
    write(4);
    const before = countFrames();
    write(1);
    truncateSync(wal, statSync(wal).size - FRAME_BYTES);

    expect(countReadableFrames(wal)).toBe(before);
  });

  it.each([
    ['zeros', (log: Buffer, at: number) => log.fill(0, at, at + PAGE_BYTES)],
    ['one other bit', (log: Buffer, at: number) => log.writeUInt8(log.readUInt8(at) ^ 1, at)],
  ])('ends before the transaction in which a frame has %s', (_what, damage) => {
    write(2);
    const before = countFrames();
    write(3);
    const log = readFileSync(wal);
    damage(log, HEADER_BYTES + before * FRAME_BYTES + 1000);
    writeFileSync(wal, log);

    expect(countReadableFrames(wal)).toBe(before);
    expect(countFrames()).toBeGreaterThan(before);
  });

  it.each([
    ['is empty', () => Buffer.alloc(0)],
    ['ends in its header', (log: Buffer) => log.subarray(0, HEADER_BYTES - 1)],
    ['has a damaged header', (log: Buffer) => log.fill(7, 12, 16)],
    ['is another file', (log: Buffer) => log.fill(7)],
  ])('returns 0 if the log %s', (_what, change) => {
    write(2);
    const other = join(folder, 'other-wal');
    writeFileSync(other, change(readFileSync(wal)));

    expect(countReadableFrames(other)).toBe(0);
  });
});
