import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';

export interface FileWatcherEvents<T> {
  onChange(value: T): void;
  /**
   * The files are unreadable or invalid, and the last valid value stays in use. Called once per distinct
   * error.
   */
  onError(message: string): void;
}

/**
 * Keeps a value that one or several files define up to date.
 *
 * It reads the files every second. It does not rely on notifications or modification times: they are
 * unreliable on network and container file systems, and miss changes behind symbolic links. A change
 * takes effect when two consecutive reads agree, that is, within two seconds. So a file that is still being
 * written is not used.
 */
export class FileWatcher<T> {
  /** The value of the last valid contents. */
  current: T;
  /** Whether the files can be read and are valid. */
  isValid = true;
  private isParsedValid = true;
  private readonly hasOnlyRegularFiles: boolean;
  /** Fingerprint of the contents that were parsed last. */
  private parsed: string;
  /** Fingerprint of the contents that were read last. */
  private seen: string;
  private lastError = '';
  private timer?: NodeJS.Timeout;
  private isStopped = false;

  /**
   * @param parse creates the value from the contents; throws when they are invalid
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

  /** Watches the files from now on, unless one of them is not a regular file. */
  start(events: FileWatcherEvents<T>): void {
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

  private async read(events: FileWatcherEvents<T>): Promise<void> {
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
        events.onChange(this.current);
      }
      this.isValid = this.isParsedValid;
      this.lastError = '';
    } catch (error) {
      this.isValid = false;
      const { message } = error as Error;
      if (message !== this.lastError) events.onError(message);
      this.lastError = message;
    }
  }
}

/** @throws Error when the file has become a pipe: reading it might never end */
async function readRegularFile(path: string): Promise<Buffer> {
  if (!(await stat(path)).isFile()) throw new Error('it is not a regular file');
  return readFile(path);
}

function fingerprint(contents: readonly Buffer[]): string {
  return contents.map((content) => hash('sha256', content)).join();
}
