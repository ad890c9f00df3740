import { closeSync, copyFileSync, openSync, writeSync } from 'node:fs';
import { readTraces, createStraceWrapper } from './strace';

/** The state of a byte. `LOST`: it was written before a sync that failed. */
const [ON_DISK, WRITTEN, LOST] = [0, 1, 2];

/**
 * Determines from traces of system calls which bytes of a SQLite write-ahead log are on disk. A failed sync
 * loses what was written before it: Linux marks such pages as clean, so later syncs skip them.
 */
export class DiskModel {
  private bytes = new Uint8Array(0);
  /** The ranges that were written since the last sync. */
  private unsynced: [from: number, to: number][] = [];

  /** @param log the path of the write-ahead log */
  constructor(private readonly log: string) {}

  /** Returns a wrapper that writes one trace per thread, for {@link applyTraces}. */
  static wrapper(trace: string, ...options: string[]): string[] {
    const calls = 'trace=pwrite64,fsync,fdatasync,ftruncate';
    return createStraceWrapper('-y', '-s', '0', '-e', calls, ...options, '-ff', '-o', trace);
  }

  /** Applies the traces of a process that has ended. */
  applyTraces(trace: string): void {
    const lines = readTraces(trace).filter((line) => line.includes(`<${this.log}>`));
    for (const line of lines) {
      const [, call, numbers = '', result] = /^(\w+)\(\d+<[^>]*>(.*)\) += (-?\d+)/.exec(line) ?? [];
      const [first = 0, second = 0] = (numbers.match(/\d+/g) ?? []).map(Number);
      if (call === 'ftruncate') {
        this.bytes = this.bytes.slice(0, first);
        this.unsynced = [];
      } else if (call === 'pwrite64') this.markWritten(second, Number(result));
      else this.markSynced(Number(result) === 0);
    }
  }

  /** Copies the database and its write-ahead log in the state after a power failure. */
  copyDisk(database: string, copy: string): void {
    copyFileSync(database, copy);
    copyFileSync(this.log, `${copy}-wal`);
    const descriptor = openSync(`${copy}-wal`, 'r+');
    this.bytes.forEach((state, at) => {
      if (state !== ON_DISK) writeSync(descriptor, '\0', at);
    });
    closeSync(descriptor);
  }

  /** The number of bytes that a failed sync lost and that were not written and synced again. */
  get lostBytes(): number {
    return this.bytes.filter((state) => state === LOST).length;
  }

  private markWritten(at: number, length: number): void {
    if (length <= 0) return;
    if (this.bytes.length < at + length) {
      const longer = new Uint8Array(at + length);
      longer.set(this.bytes);
      this.bytes = longer;
    }
    this.bytes.fill(WRITTEN, at, at + length);
    this.unsynced.push([at, at + length]);
  }

  private markSynced(isSuccess: boolean): void {
    for (const [from, to] of this.unsynced) this.bytes.fill(isSuccess ? ON_DISK : LOST, from, to);
    this.unsynced = [];
  }
}
