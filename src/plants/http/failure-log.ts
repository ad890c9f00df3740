import { Injectable, Logger } from '@nestjs/common';
import type { PlantStoreError } from '../errors/errors';
import { StoreFailure } from '../store/store-driver';
import { type HostRequest, nodeRequest } from './request';

/** The maximum number of lines about each error number. An unavailable store can fail thousands of requests. */
const MAX_LINES_PER_SECOND = 10;

/**
 * The form of a `traceparent`, W3C Trace Context section 3.2: version, trace id, parent id and flags. A later version
 * than 00 may have more fields, which are not read (section "Versioning of traceparent"). Version ff is invalid.
 */
const TRACEPARENT = /^((?!ff)[\da-f]{2}-(?!0+-)[\da-f]{32}-(?!0+-)[\da-f]{16}-[\da-f]{2})(?:-.*)?$/;
const TRACEPARENT_LENGTH = 55;

/** Returns the log fields that identify a request: its id, and the `traceparent` of the caller if it is well-formed. */
export function requestFields(request: HostRequest): Record<string, unknown> {
  const traceparent = parseTraceparent(String(nodeRequest(request).headers.traceparent));
  return {
    ...(request.id !== undefined && { requestId: request.id }),
    ...(traceparent !== undefined && { traceparent }),
  };
}

function parseTraceparent(value: string): string | undefined {
  const [, known] = TRACEPARENT.exec(value) ?? [];
  const hasMoreFields = value.length > TRACEPARENT_LENGTH;
  return hasMoreFields && value.startsWith('00') ? undefined : known;
}

/** A line of the log about the cause of a failure. */
export class FailureLine extends Error {
  /** Tells loggers to log the cause as the error. */
  readonly hasOnlyCause = true;

  constructor(message: string, options: ErrorOptions) {
    super(message, options);
    // Loggers of hosts print the stack of an error. This one would only show where the line was written.
    this.stack = message;
  }
}

/** Logs the errors that get a 5xx, with their cause, unless it is a store failure that was already logged. */
@Injectable()
export class FailureLog {
  private readonly logger = new Logger('Errors');
  private readonly counts = new Map<number, number>();

  /** Logs an error, unless this second already has many lines about its number. */
  write(failure: PlantStoreError, request: HostRequest): void {
    const { error, message, cause } = failure;
    // A second begins with its first error: no timer runs while there are none.
    if (this.counts.size === 0) {
      setTimeout(() => {
        this.counts.clear();
      }, 1000).unref();
    }
    const count = (this.counts.get(error) ?? 0) + 1;
    this.counts.set(error, count);
    if (count > MAX_LINES_PER_SECOND) return;
    const isLogged = cause instanceof StoreFailure && cause.reach !== 'batch';
    const text = isLogged ? 'The store is unavailable; the cause was logged earlier.' : message;
    const line = new FailureLine(`${error} ${text}`, isLogged ? {} : { cause });
    // An error with the fields, because Nest's logger creates an entry for each further argument.
    this.logger.error(Object.assign(line, requestFields(request)));
  }
}
