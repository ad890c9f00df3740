import { readFileSync, statSync, unwatchFile, watchFile } from 'node:fs';
import { Logger } from '@nestjs/common';

const POLL_INTERVAL_MS = 1000;

/**
 * Keeps a value that one or several files define up to date, by `fs.watchFile`, and logs each change. It follows
 * symbolic links, such as those of Kubernetes secrets. While the files are invalid, the last valid value stays in use.
 */
export class FileWatcher<T> {
  current: T;
  /** Whether the files, as they are now, can be read and are valid. */
  isValid = true;
  private contents: readonly Buffer[];
  private lastError = '';
  private timer?: NodeJS.Timeout;
  private onChange?: ((value: T) => void) | undefined;

  /**
   * @param name what the files contain, for the log, such as `The token file tokens.txt`
   * @param parse creates the value from the contents; throws when they are invalid
   * @throws Error when a file cannot be read, or what `parse` throws
   */
  constructor(
    private readonly name: string,
    private readonly paths: readonly string[],
    private readonly parse: (...contents: Buffer[]) => T,
  ) {
    this.contents = paths.map(readRegularFile);
    this.current = parse(...this.contents);
  }

  /** Watches the files from now on. Does not keep the process running. */
  start(onChange?: (value: T) => void): void {
    this.onChange = onChange;
    const options = { interval: POLL_INTERVAL_MS, persistent: false };
    for (const path of this.paths) watchFile(path, options, this.reload);
    // Notices a change before the first look of watchFile, which is asynchronous, and one since the files were first read.
    this.timer = setTimeout(this.reload, POLL_INTERVAL_MS).unref();
    this.reload();
  }

  stop(): void {
    clearTimeout(this.timer);
    for (const path of this.paths) unwatchFile(path, this.reload);
  }

  private readonly reload = (): void => {
    const logger = new Logger('FileWatcher');
    try {
      const contents = this.paths.map(readRegularFile);
      const isChanged = contents.some((content, at) => !this.contents[at]?.equals(content));
      if (!isChanged && this.isValid) return;
      this.current = this.parse(...contents);
      this.contents = contents;
      this.isValid = true;
    } catch (error) {
      // The reason may end without a change of the files: no descriptor was free, for example.
      clearTimeout(this.timer);
      this.timer = setTimeout(this.reload, POLL_INTERVAL_MS).unref();
      const { message } = error as Error;
      if (!this.isValid && message === this.lastError) return;
      this.isValid = false;
      this.lastError = message;
      logger.error(`${this.name} cannot be used: ${message}. Keeping the last valid content.`);
      return;
    }
    logger.log(`${this.name}: reloaded.`);
    this.onChange?.(this.current);
  };
}

/** @throws Error when the file cannot be read, or is a pipe, which might never end */
function readRegularFile(path: string): Buffer {
  if (!statSync(path).isFile()) throw new Error('it is not a regular file');
  return readFileSync(path);
}
