import { hash } from 'node:crypto';

/** The SHA-256 digest of a token. Tokens are kept and compared as digests only. */
export function tokenDigest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
