import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { PlantStoreError } from '../errors/errors';
import { PlantsRepository } from '../plants.repository';
import { type HostRequest, nodeRequest } from './request';

/** W3C Trace Context section 3.2: version 00, with neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * Returns the log fields that identify a request: its id, if it has one, and the `traceparent` of the
 * caller with its trace id, if that is well-formed.
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
 * A failure for the log, with its cause and the fields of its request. It is an error, because Nest's logger
 * prints an error as one entry, but creates an entry for each further argument.
 */
export class LoggedFailure extends Error {
  constructor(message: string, fields: object, options?: ErrorOptions) {
    super(message, options);
    // The stack of the cause is logged.
    this.stack = message;
    Object.assign(this, fields);
  }
}

/**
 * Logs the errors that get a 5xx: one line each, and at most ten lines per second for each number, because
 * an unavailable store can fail thousands of requests. The line contains the cause, unless it is the store
 * failure that was already logged.
 */
@Injectable()
export class FailureLog implements OnApplicationShutdown {
  private readonly logger = new Logger('Errors');
  private readonly throttle = new LogThrottle<number>(10, (error, count) => {
    this.logger.error(`Error ${error} occurred ${count} more times within a second.`);
  });

  constructor(private readonly plants: PlantsRepository) {}

  write(failure: PlantStoreError, request: HostRequest): void {
    const { error, message, cause = failure } = failure;
    if (!this.throttle.allow(error)) return;
    const fields = requestFields(request);
    const isLogged = cause === this.plants.currentFailure();
    this.logger.error(
      isLogged
        ? new LoggedFailure(
            `${error} The store is unavailable; the cause was logged earlier.`,
            fields,
          )
        : new LoggedFailure(`${error} ${message}`, fields, { cause }),
    );
  }

  onApplicationShutdown(): void {
    this.throttle.flush();
  }
}

/**
 * Keeps repeated lines from flooding the log: per kind, the first few lines of an interval are written, and
 * the rest are only counted.
 */
export class LogThrottle<Kind> {
  private readonly counts = new Map<Kind, number>();

  /**
   * @param limit the maximum number of lines of each kind per interval; 0 only counts them
   * @param report called once per interval and kind with the number of lines above the limit
   * @param interval the length of an interval in milliseconds
   */
  constructor(
    private readonly limit: number,
    private readonly report: (kind: Kind, exceeding: number) => void,
    private readonly interval = 1000,
  ) {}

  /** The number of kinds in this interval. */
  get kindCount(): number {
    return this.counts.size;
  }

  /** Counts a line of a kind, and returns whether it may be written. */
  allow(kind: Kind): boolean {
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
