import type { FastifyReply, FastifyRequest } from 'fastify';
import { BodyTooLargeError, type PlantStoreError } from '../../plants/errors/errors';
import { notesOf } from '../../plants/http/request';
import { securityHeaders } from '../../plants/http/security-headers';
import type { Recorder } from '../monitoring/recorder';
import type { Connections } from './connections';
import { corsHeaders } from './cors';
import { findTargetError, isOnHealthPort } from './routing';
import { isIncomplete, mayWaitForContinue, sendBeforeBody } from './unread-body';

/** The first and the last step of every request, whether or not it has a route. */
export class RequestSteps {
  /** Whether the service is closing. Then each response closes its connection. */
  isClosing = false;

  constructor(
    private readonly connections: Connections,
    private readonly recorder: Recorder,
    private readonly corsOrigins: readonly string[],
  ) {}

  /** The first step. Returns the error of the headers. */
  begin(request: FastifyRequest, reply: FastifyReply): PlantStoreError | undefined {
    request.receivedAt = performance.now();
    void reply.header('X-Request-Id', request.id);
    // Before anything can fail, because errors have these headers, too.
    if (this.corsOrigins.length > 0) void reply.headers(corsHeaders(request, this.corsOrigins));
    return this.connections.validate(reply.raw);
  }

  /** The last step, when the response is known. Returns the content to send. */
  end(request: FastifyRequest, reply: FastifyReply, content: unknown): unknown {
    this.recorder.record(request, reply);
    // Successful create requests need none: only scripts can send them. Their errors have them already.
    if (notesOf(request).outcome === undefined) addSecurityHeaders(reply);
    // Connections to `HEALTH_PORT` are few, and idle ones would keep others out.
    if (this.isClosing || isOnHealthPort(request)) void reply.header('Connection', 'close');
    if (!isIncomplete(request.raw)) return content;

    // An oversized body may never end, RFC 9110 section 15.5.14. A client that waits for `100 Continue` sends none.
    const isTooLarge = notesOf(request).failure instanceof BodyTooLargeError;
    if (isTooLarge || mayWaitForContinue(request.raw)) void reply.header('Connection', 'close');
    return typeof content === 'string' ? sendBeforeBody(request, reply, content) : content;
  }

  /** Does all steps of a request whose target Fastify cannot parse. Fastify runs no hooks for it. */
  respondToMalformedTarget(request: FastifyRequest, reply: FastifyReply): void {
    // The error of the headers comes first, as in a request with a route.
    const error = this.begin(request, reply) ?? findTargetError(request.originalUrl);
    notesOf(request).failure = error;
    void reply.code(error.getStatus()).headers(error.headers);
    void reply.type('application/json; charset=utf-8');
    void reply.send(this.end(request, reply, JSON.stringify(error.body)));
  }
}

/**
 * Adds the security headers that the route or the filter has not set. The page of Swagger UI has a policy of its own.
 */
function addSecurityHeaders(reply: FastifyReply): void {
  for (const [name, value] of Object.entries(securityHeaders)) {
    if (!reply.hasHeader(name)) void reply.header(name, value);
  }
}
