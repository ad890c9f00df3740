import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { Caller } from '../../auth';
import { TooManyRequestsError } from '../../errors';
import { MetricsController } from '../metrics';
import { RateLimit, type RateLimitOptions } from './rate-limit';

/**
 * Limits the request rate of each caller, and reports the rest of its quota in the fields of
 * draft-ietf-httpapi-ratelimit-headers-10. Must run after the guard that sets the caller. Reading the
 * metrics is not limited, so that an operator can watch a caller that uses the same token.
 */
export class RateLimitGuard implements CanActivate {
  private readonly limit: RateLimit;
  private readonly policy: string;

  constructor(options: RateLimitOptions) {
    this.limit = new RateLimit(options);
    this.policy = `"caller";q=${options.quota};w=${options.window}`;
  }

  /** @throws TooManyRequestsError when the caller has used up its quota */
  canActivate(context: ExecutionContext): boolean {
    if (context.getClass() === MetricsController) return true;
    const http = context.switchToHttp();
    const { caller } = http.getRequest<{ caller?: Caller }>();
    // A JWT may have the same name as a token in the list.
    const key = JSON.stringify([caller?.issuer, caller?.name]);
    const { remaining, resetAfter, retryAfter } = this.limit.take(key, performance.now());
    void http.getResponse<FastifyReply>().headers({
      'RateLimit-Policy': this.policy,
      RateLimit: `"caller";r=${remaining};t=${resetAfter}`,
    });
    if (retryAfter > 0) throw new TooManyRequestsError(retryAfter);
    return true;
  }
}
