import { hash, randomBytes } from 'node:crypto';

/** RFC 6750 section 2.1, b64token. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** A new token of 256 random bits. */
export function makeToken(): string {
  return randomBytes(32).toString('base64url');
}

/** The SHA-256 digest of a token, one character a byte. Tokens are kept and compared as digests only. */
export function tokenDigest(token: string): string {
  return hash('sha256', token, 'latin1');
}

/** The {@link tokenDigest} of an accepted token, given as the token itself or as `sha256:HEX` of it. */
export function digestOfEntry(entry: string): string | undefined {
  const [, hex] = /^sha256:([0-9a-f]{64})$/i.exec(entry) ?? [];
  if (hex !== undefined) return Buffer.from(hex, 'hex').toString('latin1');
  return TOKEN.test(entry) ? tokenDigest(entry) : undefined;
}

/** How a digest is written in a list: `sha256:HEX`. */
export function entryOfDigest(digest: string): string {
  return `sha256:${Buffer.from(digest, 'latin1').toString('hex')}`;
}
