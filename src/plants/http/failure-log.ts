import { Injectable, Logger } from '@nestjs/common';
import type { PlantStoreError } from '../errors/errors';
import { PlantsRepository } from '../plants.repository';
import { type HostRequest, nodeRequest } from './request';

/** W3C Trace Context section 3.2: version 00, with neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The maximum number of lines about each error number. An unavailable store can fail thousands of requests. */
const MAX_LINES_PER_SECOND = 10;

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
 * Logs the errors that get a 5xx, one line each. The line contains the cause, unless it is the store failure
 * that was already logged.
 */
@Injectable()
export class FailureLog {
  private readonly logger = new Logger('Errors');
  /** The number of lines about each error number in the current second. */
  private readonly counts = new Map<number, number>();
  private secondEnd = 0;

  constructor(private readonly plants: PlantsRepository) {}

  write(failure: PlantStoreError, request: HostRequest): void {
    const { error, message, cause = failure } = failure;
    if (this.countLine(error) > MAX_LINES_PER_SECOND) return;
    const isLogged = cause === this.plants.currentFailure();
    const text = isLogged ? 'The store is unavailable; the cause was logged earlier.' : message;
    const options = isLogged ? {} : { cause };
    this.logger.error(new LoggedFailure(`${error} ${text}`, requestFields(request), options));
  }

  private countLine(error: number): number {
    const now = performance.now();
    if (now >= this.secondEnd) {
      this.counts.clear();
      this.secondEnd = now + 1000;
    }
    const count = (this.counts.get(error) ?? 0) + 1;
    this.counts.set(error, count);
    return count;
  }
}
