import { Logger } from '@nestjs/common';
import { failureChannel, type PlantStoreError } from '../errors';
import { LogThrottle } from './log-throttle';

/** Lines a second in full for each error number. */
const FULL_LINES = 10;

/**
 * Logs the errors that are answered with 5xx: one line each, with its cause. An unavailable store can
 * fail thousands of requests a second, all for one reason, hence the throttle.
 */
export class FailureLog {
  private readonly logger = new Logger('Errors');
  private readonly throttle = new LogThrottle<number>(FULL_LINES, (error, count) => {
    this.logger.error(`Error ${error} occurred ${count} more times within a second.`);
  });

  /** @param request the failed request, for {@link failureChannel} */
  write(failure: PlantStoreError, request: object): void {
    const { error, message, cause = failure } = failure;
    if (!this.throttle.admit(error)) return;
    failureChannel.runStores(request, () => {
      this.logger.error(cause, `${error} ${message}`);
    });
  }

  /** Logs what has been counted so far. */
  flush(): void {
    this.throttle.flush();
  }
}
