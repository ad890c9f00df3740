import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { failureChannel } from '../../errors';

/** The request whose failure is being logged. */
const current = new AsyncLocalStorage<FastifyRequest>();

/** W3C Trace Context section 3.2, version 00, and neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** What a log line says of the request that it is part of. */
export interface RequestFields {
  readonly requestId: string;
  /** As the caller sent it, when it did and it is well-formed. */
  readonly traceparent?: string;
}

/** The span of a request, by the names that OpenTelemetry gives them in logs. */
export interface TraceFields {
  readonly trace_id: string;
  readonly span_id: string;
  readonly trace_flags: string;
}

/** What log lines say of the spans of requests; empty unless requests are traced. */
export const traceFields = new WeakMap<IncomingMessage, TraceFields>();

/**
 * Has the log lines of a failed request name it. Not for all of the time that a request takes: that
 * costs every request, and no other line is part of one.
 */
export function identifyFailedRequests(): void {
  failureChannel.bindStore(current);
}

/** The fields for a log line: those of the request given, or of the current one; none outside. */
export function requestFields(
  request = current.getStore(),
): (RequestFields & Partial<TraceFields>) | undefined {
  if (request === undefined) return undefined;
  const { traceparent } = request.headers;
  const trace = traceFields.get(request.raw);
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent)
    ? { requestId: request.id, traceparent, ...trace }
    : { requestId: request.id, ...trace };
}
