import type { DestinationStream } from 'pino';
import { SonicBoom } from 'sonic-boom';

/** Milliseconds without progress after which the reader is taken to have stalled. */
const STALL = 1000;

/**
 * The standard output, written asynchronously. The service goes on when it cannot be written, because
 * the disk is full or its reader does not read. Up to 16 MiB of lines wait, later ones are dropped, and
 * the process does not wait for them when it exits.
 */
class StandardOutput implements DestinationStream {
  private readonly output = new SonicBoom({ fd: 1, maxLength: 2 ** 24 });
  private failing = false;
  /** When something was written last, and when something was given to be written after that. */
  private writtenAt = 0;
  private givenAt = 0;

  constructor() {
    this.output.on('error', () => (this.failing = true));
    this.output.on('write', () => {
      this.failing = false;
      this.writtenAt = performance.now();
    });
    process.once('exit', () => {
      this.flushSync();
    });
  }

  write(line: string): void {
    if (this.givenAt <= this.writtenAt) this.givenAt = performance.now();
    this.output.write(line);
  }

  /** Writes what waits, at once. pino calls it after a line of level `fatal`. */
  flushSync(): void {
    const isStalled = this.givenAt > this.writtenAt && performance.now() - this.givenAt > STALL;
    if (!this.failing && !isStalled) this.output.flushSync();
  }
}

let shared: StandardOutput | undefined;

/** The one {@link StandardOutput} of the process, which all loggers share. */
export function standardOutput(): DestinationStream {
  return (shared ??= new StandardOutput());
}
