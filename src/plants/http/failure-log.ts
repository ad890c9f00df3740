import { Logger } from '@nestjs/common';
import { failureChannel, type PlantStoreError } from '../errors/errors';
import { LogThrottle } from './log-throttle';

/**
 * Logs the errors that are answered with 5xx: one line each, with its cause, and at most ten a second
 * of each number, because an unavailable store can fail thousands of requests.
 */
export class FailureLog {
  private readonly logger = new Logger('Errors');
  private readonly throttle = new LogThrottle<number>(10, (error, count) => {
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

  flush(): void {
    this.throttle.flush();
  }
}
