import { RateLimit } from './rate-limit';

describe('RateLimit', () => {
  const limit = () => new RateLimit({ quota: 3, window: 60 });

  it('lets the whole quota through at once, and says what is left', () => {
    const each = limit();

    expect([each.take('a', 0), each.take('a', 0), each.take('a', 0)]).toEqual([
      { remaining: 2, resetAfter: 20, retryAfter: 0 },
      { remaining: 1, resetAfter: 40, retryAfter: 0 },
      { remaining: 0, resetAfter: 60, retryAfter: 0 },
    ]);
  });

  it('refuses what exceeds it, and says when to come again', () => {
    const each = limit();
    for (let count = 0; count < 3; count++) each.take('a', 0);

    expect(each.take('a', 5000)).toEqual({ remaining: 0, resetAfter: 55, retryAfter: 15 });
    expect(each.take('a', 20_000).retryAfter).toBe(0);
  });

  it('counts each caller apart', () => {
    const each = limit();
    for (let count = 0; count < 4; count++) each.take('a', 0);

    expect(each.take('b', 0).retryAfter).toBe(0);
  });

  it('never lets through more than the quota and what refilled', () => {
    const each = new RateLimit({ quota: 7, window: 1 });
    let through = 0;
    for (let now = 0; now < 10_000; now++) if (each.take('a', now).retryAfter === 0) through++;

    expect(through).toBeLessThanOrEqual(7 + 70);
    expect(through).toBeGreaterThanOrEqual(70);
  });
});
