import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import { failureChannel } from '../../errors';

/** What log lines need of a request. Fastify's requests have it. */
export interface LoggedRequest {
  readonly id: string;
  readonly raw: IncomingMessage;
}

/** The request whose failure is being logged. */
const current = new AsyncLocalStorage<LoggedRequest>();

/** W3C Trace Context section 3.2: version 00, with neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The fields of a log line that identify its request. */
export interface RequestFields {
  readonly requestId: string;
  /** From the caller, if it sent a well-formed one. */
  readonly traceparent?: string;
}

/** The fields of a log line that identify the span of its request, as OpenTelemetry names them. */
export interface TraceFields {
  readonly trace_id: string;
  readonly span_id: string;
  readonly trace_flags: string;
}

/** The trace fields of each request; empty unless requests are traced. */
export const traceFields = new WeakMap<IncomingMessage, TraceFields>();

/**
 * Adds the request id to the log lines of a failed request. Only while the failure is logged: no other
 * line belongs to a request, and a context for the whole request would slow down each of them.
 */
export function identifyFailedRequests(): void {
  failureChannel.bindStore(current);
}

/** The log fields of a request, by default of the failed one that is being logged, if any. */
export function requestFields(
  request = current.getStore(),
): (RequestFields & Partial<TraceFields>) | undefined {
  if (request === undefined) return undefined;
  const { traceparent } = request.raw.headers;
  const trace = traceFields.get(request.raw);
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent)
    ? { requestId: request.id, traceparent, ...trace }
    : { requestId: request.id, ...trace };
}
