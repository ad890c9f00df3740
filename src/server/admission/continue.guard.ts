import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { assertLength } from '../../plants/http/read-body';

/**
 * Sends `100 Continue` to a client that waits for it, RFC 9110 section 10.1.1. It is the last guard, so
 * that no later guard can reject the request after `100 Continue` was sent.
 */
export class ContinueGuard implements CanActivate {
  /** @param bodyLimit bytes */
  constructor(private readonly bodyLimit: number) {}

  /** @throws BodyTooLargeError when the `Content-Length` exceeds the limit */
  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    const { raw } = http.getRequest<FastifyRequest>();
    if (raw.headers.expect === undefined) return true;
    assertLength(raw, this.bodyLimit);
    http.getResponse<FastifyReply>().raw.writeContinue();
    // The expectation is met, so code that runs later must not see it.
    delete raw.headers.expect;
    return true;
  }
}
