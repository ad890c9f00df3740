import { Logger } from '@nestjs/common';
import { failureChannel, type PlantStoreError } from '../errors';

/** Lines a second in full for each number; what exceeds them is counted. */
const FULL_LINES = 10;

/** Milliseconds. */
const SECOND = 1000;

/**
 * The log of what is answered with 5xx: one line each, with its cause. A store that is away fails
 * thousands of requests a second for the same reason, and a log that grows as fast is a fault of
 * its own: of one error number the first ten in a second are logged, the others counted in one line.
 */
export class FailureLog {
  private readonly logger = new Logger('Errors');
  /** How many there were in the current second, by number. */
  private readonly counts = new Map<number, number>();

  /** @param request whose failure it is, for {@link failureChannel} */
  write(failure: PlantStoreError, request: object): void {
    const { error, message, cause = failure } = failure;
    if (this.counts.size === 0) this.startSecond();
    const count = (this.counts.get(error) ?? 0) + 1;
    this.counts.set(error, count);
    if (count > FULL_LINES) return;
    failureChannel.runStores(request, () => {
      this.logger.error(cause, `${error} ${message}`);
    });
  }

  /** Writes what has been counted so far. */
  flush(): void {
    for (const [error, count] of this.counts) {
      if (count > FULL_LINES) {
        this.logger.error(`${error} another ${count - FULL_LINES} times within a second`);
      }
    }
    this.counts.clear();
  }

  private startSecond(): void {
    setTimeout(() => {
      this.flush();
    }, SECOND).unref();
  }
}
