import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host';
import type { Caller } from '../../auth';
import { TooManyRequestsError } from '../../errors';
import { RateLimit, RateLimitGuard } from './rate-limit.guard';

describe('RateLimitGuard', () => {
  it('distinguishes callers of the same name by their issuer', () => {
    const guard = new RateLimitGuard({ quota: 1, window: 60 });
    const request = (caller: Caller) =>
      guard.canActivate(new ExecutionContextHost([{ caller }, { headers: jest.fn() }]));

    expect(request({ name: 'ci' })).toBe(true);
    expect(request({ name: 'ci', issuer: 'https://id.example' })).toBe(true);
    expect(() => request({ name: 'ci' })).toThrow(TooManyRequestsError);
  });
});

describe('RateLimit', () => {
  const createLimit = () => new RateLimit({ quota: 3, window: 60 });

  it('refuses requests of a caller beyond the quota, and says when to retry', () => {
    const limit = createLimit();
    for (let count = 0; count < 3; count++) limit.take('a', 0);

    expect(limit.take('a', 5000)).toEqual({ remaining: 0, resetAfter: 55, retryAfter: 15 });
    expect(limit.take('b', 5000).retryAfter).toBe(0);
    expect(limit.take('a', 20_000).retryAfter).toBe(0);
  });

  it('reports the same whole seconds whatever fraction the clock has', () => {
    const limit = new RateLimit({ quota: 2, window: 3600 });

    expect(limit.take('a', 409_841.04906227137).resetAfter).toBe(1800);
  });

  it('never admits more than the quota plus what refilled', () => {
    const limit = new RateLimit({ quota: 7, window: 1 });
    let admitted = 0;
    for (let now = 0; now < 10_000; now++) if (limit.take('a', now).retryAfter === 0) admitted++;

    expect(admitted).toBeLessThanOrEqual(7 + 70);
    expect(admitted).toBeGreaterThanOrEqual(70);
  });
});
