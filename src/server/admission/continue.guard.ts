import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';

/**
 * Asks a client that waits for `100 Continue` for its body, RFC 9110 section 10.1.1. It is the last
 * guard, so that no other answer follows it without the body.
 */
export class ContinueGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const http = context.switchToHttp();
    const { headers } = http.getRequest<FastifyRequest>().raw;
    if (headers.expect === undefined) return true;
    http.getResponse<FastifyReply>().raw.writeContinue();
    // The expectation is met.
    delete headers.expect;
    return true;
  }
}
