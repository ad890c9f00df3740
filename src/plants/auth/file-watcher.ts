import { readFileSync, statSync, unwatchFile, watchFile } from 'node:fs';
import { Logger } from '@nestjs/common';

const POLL_INTERVAL_MS = 1000;
/** How long changed files must stay the same. A program that rewrites a file in place first makes it empty. */
const SETTLE_MS = 250;

/**
 * Keeps a value that one or several files define up to date, by `fs.watchFile`, and logs each change. It follows
 * symbolic links, such as those of Kubernetes secrets. Changed files take effect when two looks in a row find the same
 * contents, because a file that is being written may look like a valid one. While the files are invalid, the last valid
 * value stays in use.
 */
export class FileWatcher<T> {
  /** The value of the last valid contents. */
  current: T;
  /** Whether the files, as they are now, can be read and are valid. */
  isValid = true;
  /** The contents from which {@link current} was created. */
  private usedContents: readonly Buffer[];
  /** The contents that the last look found. */
  private seenContents: readonly Buffer[];
  private lastError = '';
  /** The look after a start: `watchFile` does not report changes before its own first look, which is asynchronous. */
  private startTimer?: NodeJS.Timeout;
  /** The next look at changed or invalid files. */
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
    this.usedContents = paths.map(readRegularFile);
    this.seenContents = this.usedContents;
    this.current = parse(...this.usedContents);
  }

  /** Watches the files from now on. Does not keep the process running. */
  start(onChange?: (value: T) => void): void {
    this.onChange = onChange;
    const options = { interval: POLL_INTERVAL_MS, persistent: false };
    for (const path of this.paths) watchFile(path, options, this.look);
    this.startTimer = setTimeout(this.look, POLL_INTERVAL_MS).unref();
    // The files may have changed since they were first read.
    this.look();
  }

  stop(): void {
    clearTimeout(this.startTimer);
    clearTimeout(this.timer);
    for (const path of this.paths) unwatchFile(path, this.look);
  }

  private readonly look = (): void => {
    let contents: readonly Buffer[];
    try {
      contents = this.paths.map(readRegularFile);
    } catch (error) {
      this.reportInvalid(error as Error);
      return;
    }
    const isSettled = areEqual(contents, this.seenContents);
    this.seenContents = contents;
    if (this.isValid && areEqual(contents, this.usedContents)) return;
    if (isSettled) this.use(contents);
    else this.lookAgainAfter(SETTLE_MS);
  };

  private use(contents: readonly Buffer[]): void {
    try {
      this.current = this.parse(...contents);
    } catch (error) {
      this.reportInvalid(error as Error);
      return;
    }
    this.usedContents = contents;
    this.isValid = true;
    new Logger('FileWatcher').log(`${this.name}: reloaded.`);
    this.onChange?.(this.current);
  }

  /** Logs each reason once. */
  private reportInvalid({ message }: Error): void {
    // The reason may end without a change of the files: no descriptor was free, for example.
    this.lookAgainAfter(POLL_INTERVAL_MS);
    if (!this.isValid && message === this.lastError) return;
    this.isValid = false;
    this.lastError = message;
    new Logger('FileWatcher').error(
      `${this.name} cannot be used: ${message}. Keeping the last valid content.`,
    );
  }

  private lookAgainAfter(milliseconds: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.look, milliseconds).unref();
  }
}

function areEqual(some: readonly Buffer[], others: readonly Buffer[]): boolean {
  return some.every((content, index) => others[index]?.equals(content));
}

/** @throws Error when the file cannot be read, or is a pipe, which might never end */
function readRegularFile(path: string): Buffer {
  if (!statSync(path).isFile()) throw new Error('it is not a regular file');
  return readFileSync(path);
}
