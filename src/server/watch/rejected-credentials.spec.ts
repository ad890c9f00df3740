import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { advanceClock, restoreClock, stopClock } from '../../../test/support/clock';
import { useLog } from '../../../test/support/log';
import { InvalidTokenError } from '../../plants/errors/errors';
import { logRejectedCredentials } from './rejected-credentials';
import { Responses } from './responses';

describe('logRejectedCredentials', () => {
  const { lines } = useLog();
  const responses = new Responses();
  logRejectedCredentials(responses, []);
  beforeEach(stopClock);
  afterEach(restoreClock);

  function rejectToken(address: string): void {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: address });
    const raw = new IncomingMessage(socket);
    responses.emit('completed', {
      id: 'a',
      raw,
      status: 401,
      ms: 1,
      failure: new InvalidTokenError(),
    });
  }

  it('counts repeated rejections, and logs the count after a minute', () => {
    for (let time = 0; time < 3; time++) rejectToken('192.0.2.1');
    rejectToken('192.0.2.2');
    expect(lines).toHaveLength(2);
    advanceClock(59_999);
    expect(lines).toHaveLength(2);

    advanceClock(1);

    expect(lines[2]).toMatch(/^warn Rejected 2 more tokens within a minute, from 192\.0\.2\.1: /);
    expect(lines).toHaveLength(3);
  });

  it('counts addresses beyond the first hundred together', () => {
    for (let last = 1; last <= 102; last++) rejectToken(`192.0.2.${last}`);
    expect(lines[99]).toContain('192.0.2.100');
    expect(lines.slice(100)).toEqual(['warn Rejected a token from further addresses.']);

    advanceClock(60_000);

    expect(lines.slice(101)).toEqual([
      'warn Rejected 1 more tokens within a minute, from further addresses.',
    ]);
  });
});
