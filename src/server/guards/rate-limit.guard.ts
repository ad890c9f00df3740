import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { FastifyReply } from 'fastify';
import { RateLimiterMemory, type RateLimiterRes } from 'rate-limiter-flexible';
import { type Caller, identifyCaller } from '../../plants/http/caller';
import { PlantStoreError } from '../../plants/errors/errors';
import type { RateLimit } from '../settings/variable-parsers';

/** `@SkipRateLimit(true)` exempts the routes of a controller from the rate limit. */
export const SkipRateLimit = Reflector.createDecorator<boolean>();

/**
 * Limits the requests of each caller, except on routes with {@link SkipRateLimit}, and reports the remaining quota in the
 * headers of draft-ietf-httpapi-ratelimit-headers-10 (newer drafts exist). Must run after the guard that sets the caller.
 */
export class RateLimitGuard implements CanActivate {
  private readonly limiter: RateLimiterMemory;
  private readonly reflector = new Reflector();

  constructor(private readonly options: RateLimit) {
    this.limiter = new RateLimiterMemory({ points: options.quota, duration: options.window });
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    if (this.reflector.get(SkipRateLimit, context.getClass())) return true;
    const http = context.switchToHttp();
    const { plantStore } = http.getRequest<{ readonly plantStore: { readonly caller: Caller } }>();
    const { quota, window } = this.options;
    // If the quota is used up, the promise rejects with a value of the same type.
    const state = await this.limiter
      .consume(JSON.stringify(identifyCaller(plantStore.caller)))
      .catch((exceeded: unknown) => exceeded as RateLimiterRes);
    const reset = Math.ceil(state.msBeforeNext / 1000);
    void http.getResponse<FastifyReply>().headers({
      'RateLimit-Policy': `"caller";q=${quota};w=${window}`,
      RateLimit: `"caller";r=${state.remainingPoints};t=${reset}`,
    });
    if (state.consumedPoints <= quota) return true;
    const headers = { 'Retry-After': String(reset) };
    throw new PlantStoreError('tooManyRequests', undefined, { headers });
  }
}
