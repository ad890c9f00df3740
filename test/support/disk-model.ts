import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readTraces, createStraceWrapper } from './strace';

interface Write {
  readonly at: number;
  readonly bytes: Buffer;
}

/**
 * Simulates what a power failure leaves of a SQLite file and of its write-ahead log. A write reaches the disk by the
 * next sync of its file. A failed sync loses it although it can still be read: Linux marks such pages as clean, so
 * later syncs skip them.
 */
export class DiskModel {
  private readonly files: ModelFile[];

  /** @param file the path of the database file. What it and its WAL contain now is on the disk */
  constructor(file: string) {
    this.files = ['', '-wal'].map((suffix) => new ModelFile(file + suffix, suffix));
  }

  /** Returns a wrapper that writes one trace per thread, for {@link replay}. */
  static wrapper(trace: string, ...options: string[]): string[] {
    const calls = 'trace=pwrite64,fsync,fdatasync,ftruncate,unlink';
    const output = ['-y', '-xx', '-s', '2000000', '-ff', '-o', trace];
    return createStraceWrapper(...output, '-e', calls, ...options);
  }

  /**
   * Replays the calls of a process that has ended. One thread has made all calls about a file.
   *
   * @param onCall called after each of them
   */
  replay(trace: string, onCall: () => void = () => undefined): void {
    for (const line of readTraces(trace)) {
      const [, call, path = '', bytes = '', numbers = '', result] =
        /^(\w+)\((?:\d+<|")([^>"]*)[>"](?:, "([^"]*)")?(.*)\) += (-?\d+)/.exec(line) ?? [];
      const file = this.files.find((each) => each.path === decode(path).toString());
      if (!file) continue;
      const [first = 0, offset = 0] = (numbers.match(/\d+/g) ?? []).map(Number);
      if (call === 'pwrite64') file.write(offset, decode(bytes).subarray(0, Number(result)));
      else if (call === 'ftruncate') file.truncate(first);
      else if (call === 'unlink') file.remove();
      else file.sync(Number(result) === 0);
      onCall();
    }
  }

  /** Notes that all syncs of the WAL have succeeded, for traces that leave it out. */
  markWalSynced(): void {
    this.files[1]?.read();
  }

  /**
   * Writes the files in the state after a power failure.
   *
   * @param isWritten whether a write since the last sync has reached the disk
   */
  writeDisk(copy: string, isWritten: () => boolean): void {
    rmSync(`${copy}-shm`, { force: true });
    for (const file of this.files) file.writeDisk(copy + file.suffix, isWritten);
  }
}

class ModelFile {
  private disk: Buffer | undefined;
  private unsynced: Write[] = [];

  constructor(
    readonly path: string,
    readonly suffix: string,
  ) {
    this.read();
  }

  read(): void {
    this.disk = existsSync(this.path) ? readFileSync(this.path) : undefined;
  }

  write(at: number, bytes: Buffer): void {
    this.unsynced.push({ at, bytes });
  }

  sync(isSuccess: boolean): void {
    if (isSuccess) this.disk = this.apply(() => true);
    this.unsynced = [];
  }

  truncate(length: number): void {
    this.disk = this.disk?.subarray(0, length);
    this.unsynced = this.unsynced.filter(({ at }) => at < length);
  }

  remove(): void {
    this.disk = undefined;
    this.unsynced = [];
  }

  writeDisk(copy: string, isWritten: () => boolean): void {
    rmSync(copy, { force: true });
    const content = this.apply(isWritten);
    if (content) writeFileSync(copy, content);
  }

  private apply(isWritten: () => boolean): Buffer | undefined {
    const writes = this.unsynced.filter(isWritten);
    if (writes.length === 0) return this.disk;
    const ends = writes.map(({ at, bytes }) => at + bytes.length);
    const content = Buffer.alloc(Math.max(this.disk?.length ?? 0, ...ends));
    this.disk?.copy(content);
    for (const { at, bytes } of writes) bytes.copy(content, at);
    return content;
  }
}

/** Decodes a string that strace printed with `-xx`. */
function decode(text: string): Buffer {
  return Buffer.from(text.replaceAll(String.raw`\x`, ''), 'hex');
}
