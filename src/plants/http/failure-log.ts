import { Logger } from '@nestjs/common';
import type { PlantStoreError } from '../errors/errors';
import type { PlantsRepository } from '../plants.repository';
import { type HostRequest, nodeRequest } from './request';

/** W3C Trace Context section 3.2: version 00, with neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * The log fields that identify a request: its id, if it has one, and the `traceparent` of the caller
 * with its trace id, if that is well-formed.
 */
export function requestFields(request: HostRequest): Record<string, unknown> {
  const { traceparent } = nodeRequest(request).headers;
  const [, traceId] = TRACEPARENT.exec(String(traceparent)) ?? [];
  return {
    ...(request.id !== undefined && { requestId: request.id }),
    ...(traceId && { traceparent, trace_id: traceId }),
  };
}

/**
 * A failure for the log, with its cause and the fields of its request. Nest's own logger prints an error as
 * one entry, but makes an entry of each further argument.
 */
export class LoggedFailure extends Error {
  constructor(message: string, fields: object, options?: ErrorOptions) {
    super(message, options);
    // The cause has the stack.
    this.stack = message;
    Object.assign(this, fields);
  }
}

/**
 * Logs the errors that are answered with 5xx: one line each, and at most ten a second of each number,
 * because an unavailable store can fail thousands of requests. The line has the cause, unless that is
 * the present fault of the store, which the store has logged, once.
 */
export class FailureLog {
  private readonly logger = new Logger('Errors');
  private readonly throttle = new LogThrottle<number>(10, (error, count) => {
    this.logger.error(`Error ${error} occurred ${count} more times within a second.`);
  });

  constructor(private readonly plants: PlantsRepository) {}

  write(failure: PlantStoreError, request: HostRequest): void {
    const { error, message, cause = failure } = failure;
    if (!this.throttle.admit(error)) return;
    const fields = requestFields(request);
    const isLogged = cause === this.plants.currentFailure();
    this.logger.error(
      isLogged
        ? new LoggedFailure(`${error} The store does not work, as was logged before.`, fields)
        : new LoggedFailure(`${error} ${message}`, fields, { cause }),
    );
  }

  flush(): void {
    this.throttle.flush();
  }
}

/**
 * Keeps repeated log lines from flooding the log: of each kind, the first few in an interval may be
 * written, and the others are counted.
 */
export class LogThrottle<Kind> {
  private readonly counts = new Map<Kind, number>();

  /**
   * @param limit lines of each kind in an interval; 0 only counts them
   * @param report logs, once an interval, how many lines of a kind exceeded the limit
   * @param interval milliseconds
   */
  constructor(
    private readonly limit: number,
    private readonly report: (kind: Kind, exceeding: number) => void,
    private readonly interval = 1000,
  ) {}

  /** How many kinds have been counted in this interval. */
  get kinds(): number {
    return this.counts.size;
  }

  /** Counts a line of a kind, and tells whether it may be written. */
  admit(kind: Kind): boolean {
    if (this.counts.size === 0) {
      setTimeout(() => {
        this.flush();
      }, this.interval).unref();
    }
    const count = (this.counts.get(kind) ?? 0) + 1;
    this.counts.set(kind, count);
    return count <= this.limit;
  }

  flush(): void {
    for (const [kind, count] of this.counts) {
      if (count > this.limit) this.report(kind, count - this.limit);
    }
    this.counts.clear();
  }
}
