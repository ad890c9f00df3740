import { createHash } from 'node:crypto';
import { hashToken } from './auth/bearer-token';
import { digestIdempotencyKey } from './idempotency-key';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

// Plants that are stored keep the digest, so it never changes.
it.each([
  ['a caller with a name', { name: 'bob' }, ['name', null, 'bob']],
  ['a caller of an issuer', { name: 'b"\\b', issuer: 'i' }, ['name', 'i', 'b"\\b']],
  [
    'a caller without a name',
    { name: 'token 1', tokenDigest: hashToken('good') },
    ['token', sha256('good')],
  ],
  ['nobody', undefined, []],
])('the digest of a key and %s is the digest of a JSON array', (_who, caller, scope) => {
  for (const key of ['abc', '"', '\\"', 'a,b']) {
    const expected = sha256(JSON.stringify([...scope, key]));
    expect(digestIdempotencyKey(key, caller)).toBe(expected);
    // As a guard of a host may do.
    expect(digestIdempotencyKey(key, caller && structuredClone(caller))).toBe(expected);
  }
});
