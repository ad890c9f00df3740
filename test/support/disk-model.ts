import { closeSync, copyFileSync, openSync, writeSync } from 'node:fs';
import { readTraces, strace } from './strace';

/** What of a byte has reached the disk. */
const [ON_DISK, WRITTEN, LOST] = [0, 1, 2];

/**
 * Follows, in traces of system calls, what of a SQLite log has reached the disk, when a failed sync
 * loses what was written before it: Linux takes such pages for clean, and later syncs pass them by.
 */
export class DiskModel {
  private bytes = new Uint8Array(0);
  /** Where the log was written since the last sync, and up to where. */
  private written: [from: number, to: number][] = [];

  /** @param log the path of the log */
  constructor(private readonly log: string) {}

  /** A wrapper whose traces {@link follow} reads, one for each thread. */
  static wrapper(trace: string, ...options: string[]): string[] {
    const calls = 'trace=pwrite64,fsync,fdatasync,ftruncate';
    return strace('-y', '-s', '0', '-e', calls, ...options, '-ff', '-o', trace);
  }

  /** Reads the traces of a process that has ended. */
  follow(trace: string): void {
    const lines = readTraces(trace).filter((line) => line.includes(`<${this.log}>`));
    for (const line of lines) {
      const [, call, numbers = '', result] = /^(\w+)\(\d+<[^>]*>(.*)\) += (-?\d+)/.exec(line) ?? [];
      const [first = 0, second = 0] = (numbers.match(/\d+/g) ?? []).map(Number);
      if (call === 'ftruncate') {
        this.bytes = this.bytes.slice(0, first);
        this.written = [];
      } else if (call === 'pwrite64') this.mark(second, Number(result));
      else this.sync(Number(result) === 0);
    }
  }

  /** Copies the database with its log as both would be after a power cut. */
  copyDisk(database: string, copy: string): void {
    copyFileSync(database, copy);
    copyFileSync(this.log, `${copy}-wal`);
    const descriptor = openSync(`${copy}-wal`, 'r+');
    this.bytes.forEach((state, at) => {
      if (state !== ON_DISK) writeSync(descriptor, '\0', at);
    });
    closeSync(descriptor);
  }

  /** How many bytes of the log a failed sync has lost, that were not written and synced again. */
  get lost(): number {
    return this.bytes.filter((state) => state === LOST).length;
  }

  private mark(at: number, length: number): void {
    if (length <= 0) return;
    if (this.bytes.length < at + length) {
      const longer = new Uint8Array(at + length);
      longer.set(this.bytes);
      this.bytes = longer;
    }
    this.bytes.fill(WRITTEN, at, at + length);
    this.written.push([at, at + length]);
  }

  private sync(isDone: boolean): void {
    for (const [from, to] of this.written) this.bytes.fill(isDone ? ON_DISK : LOST, from, to);
    this.written = [];
  }
}
