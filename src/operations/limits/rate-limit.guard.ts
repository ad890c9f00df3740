import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { Caller } from '../../auth';
import { TooManyRequestsError } from '../../errors';
import { MetricsController } from '../metrics';
import { RateLimit, type RateLimitOptions } from './rate-limit';

/**
 * Limits the rate of requests of each caller, and tells it what is left in the fields of
 * draft-ietf-httpapi-ratelimit-headers-10. It comes after the guard that knows the caller. Reading
 * the metrics is not limited: an operator shall see what a caller with the same token does.
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
    // A JWT may have the name of a token in the list.
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
