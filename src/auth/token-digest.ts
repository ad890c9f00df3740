import { hash, randomBytes } from 'node:crypto';

/** RFC 6750 section 2.1, b64token. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** A new random token of 192 bits. */
export function generateToken(): string {
  return randomBytes(24).toString('base64url');
}

/** The SHA-256 digest of a token. Tokens are kept and compared as digests only. */
export function tokenDigest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/**
 * The digest of an accepted token as it is configured: the token itself, or `sha256:HEX` of it.
 *
 * @returns undefined when the entry is neither
 */
export function configuredTokenDigest(entry: string): Buffer | undefined {
  const [, hex] = /^sha256:([0-9a-f]{64})$/i.exec(entry) ?? [];
  if (hex !== undefined) return Buffer.from(hex, 'hex');
  return TOKEN.test(entry) ? tokenDigest(entry) : undefined;
}
