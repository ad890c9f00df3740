import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** The request that the current piece of work is part of. */
const current = new AsyncLocalStorage<FastifyRequest>();

/** W3C Trace Context section 3.2, version 00, and neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** What a log line says of the request that it is part of. */
export interface RequestFields {
  readonly requestId: string;
  /** As the caller sent it, when it did and it is well-formed. */
  readonly traceparent?: string;
}

/** Has every log line know the request it is part of. */
export function trackRequests(instance: FastifyInstance): void {
  // Not earlier: the body arrives in a context of its own, and what follows it would be outside.
  instance.addHook('preHandler', (request, _reply, done) => {
    current.run(request, done);
  });
}

/** The fields for a log line: those of the request given, or of the current one; none outside. */
export function requestFields(request = current.getStore()): RequestFields | undefined {
  if (request === undefined) return undefined;
  const { traceparent } = request.headers;
  return typeof traceparent === 'string' && TRACEPARENT.test(traceparent)
    ? { requestId: request.id, traceparent }
    : { requestId: request.id };
}
