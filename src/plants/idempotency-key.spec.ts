import { createHash } from 'node:crypto';
import { identifyByToken } from '../auth/caller-identity';
import { hashToken } from '../auth/token-digest';
import { digestIdempotencyKey } from './idempotency-key';

/** Plants that are stored keep the digest, so it never changes. */
const digestOf = (...texts: (string | null)[]): string =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex');

describe('the digest of an idempotency key', () => {
  it.each([
    ['a caller with a name', { name: 'bob' }, ['name', null, 'bob']],
    [
      'a caller of an issuer',
      { name: 'b"o\\b', issuer: 'https://a' },
      ['name', 'https://a', 'b"o\\b'],
    ],
    ['nobody', undefined, ['mounting', '/a"b/plants']],
  ])('of %s is that of a JSON array', (_who, caller, scope) => {
    for (const key of ['abc', '"', '\\"', 'a,b']) {
      expect(digestIdempotencyKey(key, caller, '/a"b/plants')).toBe(digestOf(...scope, key));
    }
  });

  it('of a caller without a name is that of the digest of the token', () => {
    const caller = identifyByToken({ name: 'token 1' }, hashToken('good'));
    const hex = createHash('sha256').update('good').digest('hex');

    expect(digestIdempotencyKey('abc', caller, '/plants')).toBe(digestOf('token', hex, 'abc'));
  });
});
