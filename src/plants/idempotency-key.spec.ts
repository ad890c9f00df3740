import { createHash } from 'node:crypto';
import { hashToken } from '../auth/listed-token';
import { identifyByToken } from '../auth/token-verifier';
import { scopeIdempotencyKey } from './idempotency-key';

/** Plants that are stored keep a digest of the text, so it never changes. */
describe('the text that names an idempotency key and its caller', () => {
  it.each([
    ['a caller with a name', { name: 'bob' }, ['name', null, 'bob']],
    ['a caller of an issuer', { name: 'b"\\b', issuer: 'i' }, ['name', 'i', 'b"\\b']],
    ['nobody', undefined, ['mounting', '/a"b/plants']],
  ])('of %s is a JSON array', (_who, caller, scope) => {
    for (const key of ['abc', '"', '\\"', 'a,b']) {
      expect(scopeIdempotencyKey(key, caller, '/a"b/plants')).toBe(JSON.stringify([...scope, key]));
    }
  });

  it('of a caller without a name has the digest of the token', () => {
    const caller = identifyByToken({ name: 'token 1' }, hashToken('good'));
    const hex = createHash('sha256').update('good').digest('hex');

    expect(scopeIdempotencyKey('abc', caller, '/plants')).toBe(
      JSON.stringify(['token', hex, 'abc']),
    );
  });
});
