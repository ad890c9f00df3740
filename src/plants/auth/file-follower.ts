import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';

export interface FollowerEvents<T> {
  changed(value: T): void;
  /** The files are unreadable or invalid, and the last valid value stays. Called once a fault. */
  failed(message: string): void;
}

/**
 * Keeps a value that one or several files define up to date.
 *
 * It reads the files every second. It does not rely on notifications or modification times: they are
 * unreliable on network and container file systems and do not see through symbolic links. A change
 * counts at the second reading that sees it, within two seconds, so that a file which is just being
 * written does not count.
 */
export class FileFollower<T> {
  /** The value of the last valid contents. */
  current: T;
  /** Whether the files can be read and are valid. */
  isValid = true;
  private isParsedValid = true;
  private readonly hasOnlyRegularFiles: boolean;
  /** Fingerprints of the contents that were parsed last, and of those that were read last. */
  private parsed: string;
  private seen: string;
  private fault = '';
  private timer?: NodeJS.Timeout;
  private isStopped = false;

  /**
   * @param parse makes the value of the contents; throws when they are invalid
   * @throws Error when a file cannot be read, or what `parse` throws
   */
  constructor(
    private readonly paths: readonly string[],
    private readonly parse: (...contents: Buffer[]) => T,
  ) {
    // A pipe gives its content only once.
    this.hasOnlyRegularFiles = paths.every((path) => statSync(path).isFile());
    const contents = paths.map((path) => readFileSync(path));
    this.current = parse(...contents);
    this.parsed = this.seen = fingerprint(contents);
  }

  /** Follows the files from now on, unless one of them is not a regular file. */
  start(events: FollowerEvents<T>): void {
    if (!this.hasOnlyRegularFiles || this.isStopped) return;
    this.timer = setTimeout(() => {
      void this.read(events).then(() => {
        this.start(events);
      });
    }, 1000).unref();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private async read(events: FollowerEvents<T>): Promise<void> {
    try {
      const contents = await Promise.all(this.paths.map(readRegularFile));
      const found = fingerprint(contents);
      const isSettled = found === this.seen;
      this.seen = found;
      if (found !== this.parsed && isSettled) {
        this.parsed = found;
        this.isParsedValid = false;
        this.current = this.parse(...contents);
        this.isParsedValid = true;
        events.changed(this.current);
      }
      this.isValid = this.isParsedValid;
      this.fault = '';
    } catch (error) {
      this.isValid = false;
      const { message } = error as Error;
      if (message !== this.fault) events.failed(message);
      this.fault = message;
    }
  }
}

/** @throws Error when the file is a pipe by now, whose reading might never end */
async function readRegularFile(path: string): Promise<Buffer> {
  if (!(await stat(path)).isFile()) throw new Error('it is not a regular file');
  return readFile(path);
}

function fingerprint(contents: readonly Buffer[]): string {
  return contents.map((content) => hash('sha256', content)).join();
}
