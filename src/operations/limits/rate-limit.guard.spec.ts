import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host';
import type { Caller } from '../../auth';
import { TooManyRequestsError } from '../../errors';
import { RateLimitGuard } from './rate-limit.guard';

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
