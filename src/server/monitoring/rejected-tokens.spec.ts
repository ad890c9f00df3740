import type { FastifyRequest } from 'fastify';
import { advanceClock, restoreClock, stopClock } from '../../../test/support/clock';
import { useLog } from '../../../test/support/log';
import { InvalidTokenError } from '../../plants/errors/errors';
import { RejectedTokenLog } from './rejected-tokens';

describe('RejectedTokenLog', () => {
  const { lines } = useLog();
  let log: RejectedTokenLog;
  beforeEach(() => {
    stopClock();
    log = new RejectedTokenLog();
  });
  afterEach(restoreClock);

  function rejectToken(last: number): void {
    const request = { id: 'a', raw: { headers: {} } } as FastifyRequest;
    const progress = { caller: undefined, failure: new InvalidTokenError() };
    log.write(request, `192.0.2.${last}`, progress);
  }

  it('contains an address and reason once per minute', () => {
    for (const last of [1, 1, 2, 1]) rejectToken(last);
    expect(lines).toHaveLength(2);
    advanceClock(59_999);
    rejectToken(1);
    expect(lines).toHaveLength(2);

    advanceClock(1);
    rejectToken(1);

    expect(lines[2]).toMatch(/^warn Rejected a token from 192\.0\.2\.1: /);
  });

  it('contains one line for all addresses beyond the first hundred, but none for a known address', () => {
    for (let last = 1; last <= 100; last++) rejectToken(last);
    rejectToken(1);
    expect(lines).toHaveLength(100);

    for (let last = 101; last <= 110; last++) rejectToken(last);

    expect(lines.slice(100)).toEqual(['warn Rejected a token from further addresses.']);
  });
});
