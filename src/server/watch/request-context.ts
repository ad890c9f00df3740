import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { failureChannel } from '../../plants/program';

/** What log lines need of a request. Fastify's requests have it. */
export interface LoggedRequest {
  readonly id: string;
  readonly raw: IncomingMessage;
}

/** The request whose failure is being logged. */
const current = new AsyncLocalStorage<LoggedRequest>();

/** W3C Trace Context section 3.2: version 00, with neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A request id that a client may choose: harmless in a log and on a terminal. */
const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/;

/** The `X-Request-Id` of a request if that is well-formed, or else a new id. */
export function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
}

/**
 * Adds the request id to the log lines of a failed request. Only while the failure is logged: no other
 * line belongs to a request, and a context for the whole request would slow down each of them.
 */
export function identifyFailedRequests(): void {
  failureChannel.bindStore(current);
}

/**
 * The log fields that identify a request, by default the failed one that is being logged, if any: its
 * id, and the `traceparent` of the caller with its trace id if that is well-formed.
 */
export function requestFields(request = current.getStore()): object {
  if (request === undefined) return {};
  const { traceparent } = request.raw.headers;
  const [, traceId] = TRACEPARENT.exec(String(traceparent)) ?? [];
  return { requestId: request.id, ...(traceId && { traceparent, trace_id: traceId }) };
}
