import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { Caller } from '../../auth';
import { TooManyRequestsError } from '../../errors';
import { MetricsController } from '../metrics';

export interface RateLimitOptions {
  /** Requests that a caller may make within the window, all of which may come at once. */
  readonly quota: number;
  /** Seconds. */
  readonly window: number;
}

/** The quota of a caller after a request. Durations are in whole seconds, rounded up. */
export interface RateLimitState {
  readonly remaining: number;
  /** Until the whole quota is available again. */
  readonly resetAfter: number;
  /** Until a refused request may be sent again; 0 if the request is admitted. */
  readonly retryAfter: number;
}

/**
 * Limits the rate of each caller by the generic cell rate algorithm (ITU-T I.371): a bucket that
 * refills evenly, stored as the time at which it will be full.
 */
export class RateLimit {
  /** When each caller's bucket is full, in milliseconds of {@link take}'s clock. */
  private readonly fullAt = new Map<string, number>();
  private readonly window: number;
  private readonly interval: number;
  private sweepAt = 0;

  constructor({ quota, window }: RateLimitOptions) {
    this.window = window * 1000;
    this.interval = this.window / quota;
  }

  /** Counts a request unless it must be refused. The clock, in milliseconds, never goes back. */
  take(caller: string, now: number): RateLimitState {
    this.sweep(now);
    const fullAt = Math.max(this.fullAt.get(caller) ?? 0, now);
    const next = fullAt + this.interval;
    const wait = next - this.window - now;
    // Rounding errors must not refuse the last request of the quota.
    if (wait > 0.001) {
      return { remaining: 0, resetAfter: seconds(fullAt - now), retryAfter: seconds(wait) };
    }
    this.fullAt.set(caller, next);
    const remaining = Math.floor((this.window - (next - now)) / this.interval + 0.001);
    return { remaining, resetAfter: seconds(next - now), retryAfter: 0 };
  }

  /** Once a window, removes the callers whose buckets are full. */
  private sweep(now: number): void {
    if (now < this.sweepAt) return;
    this.sweepAt = now + this.window;
    for (const [caller, fullAt] of this.fullAt) if (fullAt <= now) this.fullAt.delete(caller);
  }
}

/** Whole seconds, rounded up; the sums of a clock's fractions may be off by less than a microsecond. */
function seconds(milliseconds: number): number {
  return Math.ceil(milliseconds / 1000 - 1e-6);
}

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
