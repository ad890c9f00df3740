import { requestIds } from './request-listener';

describe('a request id', () => {
  const idOf = requestIds();

  it.each(['7', 'a-b_c.d:e/f+g=h@i', 'x'.repeat(128)])('is the one given: %s', (given) => {
    expect(idOf({ headers: { 'x-request-id': given } })).toBe(given);
  });

  it.each(['', ' ', 'a b', 'a\tb', 'a"b', '{}', 'ä', 'x'.repeat(129), 'a,b'])(
    'is made when what is given is not well-formed: %j',
    (given) => {
      expect(idOf({ headers: { 'x-request-id': given } })).toMatch(/^[\w-]{12}-[0-9a-z]+$/);
    },
  );

  it('is never made twice', () => {
    expect(idOf({ headers: {} })).not.toBe(idOf({ headers: {} }));
  });
});
