/** The digest of an idempotency key, which stored plants contain. */
import { createHash } from 'node:crypto';
import { digestIdempotencyKey } from './idempotency-key';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

// Stored plants contain the digest, so it must never change.
it.each([
  ['a caller with a name', { name: 'bob' }, ['name', null, 'bob']],
  ['a caller of an issuer', { name: 'b"\\b', issuer: 'i' }, ['name', 'i', 'b"\\b']],
  [
    'a caller without a name',
    { name: 'token 1', tokenDigest: sha256('good') },
    ['token', sha256('good')],
  ],
  ['no caller', undefined, []],
])('digestIdempotencyKey returns the digest of a JSON array for %s', (_who, caller, scope) => {
  for (const key of ['abc', '"', '\\"', 'a,b']) {
    const expected = sha256(JSON.stringify([...scope, key]));
    expect(digestIdempotencyKey(key, caller)).toBe(expected);
    // The guard of a host may pass a copy.
    expect(digestIdempotencyKey(key, caller && structuredClone(caller))).toBe(expected);
  }
});
