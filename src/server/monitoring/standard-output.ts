import { write, writeSync } from 'node:fs';

const STANDARD_OUTPUT = 1;

/** While so many characters wait, because the output is stuck or full, further lines are dropped. */
const MAX_WAITING_LENGTH = 2 ** 24;

/** The time after which a write that is still in progress counts as stuck. */
const STUCK_MS = 1000;

/** How long the output waits after a failed write before it tries again. */
const RETRY_MS = 100;

/**
 * Writes lines to the standard output. Neither a request nor the end of the process waits for a disk that is full or
 * hangs, or for a reader that has stopped. `pino.destination` is not used: at exit, it retries until everything is
 * written, and then syncs the file.
 *
 * The states of the output:
 *
 * - `idle`: everything was written. The next line is written at once.
 * - `writing`: the system writes a chunk, and further lines wait. They are the next chunk.
 * - `failed`: the last write failed. It is repeated after a moment, and lines wait.
 *
 * At exit, the lines that wait are written, unless the output has failed or is stuck.
 */
export class StandardOutput {
  private state: 'idle' | 'writing' | 'failed' = 'idle';
  /** The lines behind the chunk. */
  private waiting = '';
  /** What is left of the lines that the system is writing. */
  private chunk = Buffer.alloc(0);
  private writingSince = 0;

  constructor() {
    process.once('exit', () => {
      this.flushSync();
    });
  }

  /** Writes a line, now or later. Drops it if too many characters wait. */
  write(line: string): void {
    if (this.waiting.length + line.length > MAX_WAITING_LENGTH) return;
    this.waiting += line;
    if (this.state === 'idle') this.writeChunk();
  }

  /** Writes what can be written at once. `pino` also calls this after a line of level `fatal`. */
  flushSync(): void {
    const isStuck = performance.now() - this.writingSince > STUCK_MS;
    if (this.state !== 'writing' || isStuck) return;
    let rest = Buffer.from(this.waiting);
    this.waiting = '';
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(STANDARD_OUTPUT, rest));
    } catch {
      // The lines are lost, as they would be if this had not been tried.
    }
  }

  private writeChunk(): void {
    if (this.chunk.length === 0) {
      this.chunk = Buffer.from(this.waiting);
      this.waiting = '';
    }
    if (this.chunk.length === 0) {
      this.state = 'idle';
      return;
    }
    this.state = 'writing';
    this.writingSince = performance.now();
    write(STANDARD_OUTPUT, this.chunk, (error, length) => {
      if (error) {
        this.state = 'failed';
        setTimeout(() => {
          this.writeChunk();
        }, RETRY_MS).unref();
        return;
      }
      this.chunk = this.chunk.subarray(length);
      this.writeChunk();
    });
  }
}
