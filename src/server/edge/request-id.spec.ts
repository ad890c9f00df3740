import { requestId } from './request-id';

const readRequestId = (given: string) => requestId({ headers: { 'x-request-id': given } });

describe('requestId', () => {
  it.each(['7', 'a-b_c.d:e/f+g=h@i', 'x'.repeat(128)])(
    'returns a valid X-Request-Id: %s',
    (given) => {
      expect(readRequestId(given)).toBe(given);
    },
  );

  it.each(['', ' ', 'a b', 'a\tb', 'a"b', '{}', 'ä', 'x'.repeat(129), 'a,b'])(
    'generates a new id when X-Request-Id is invalid: %j',
    (given) => {
      expect(readRequestId(given)).toMatch(/^[0-9a-f-]{36}$/);
      expect(readRequestId(given)).not.toBe(readRequestId(given));
    },
  );
});
