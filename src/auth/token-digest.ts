import { hash, randomBytes } from 'node:crypto';

/** RFC 6750 section 2.1, b64token. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** Makes a token of 256 random bits. */
export function makeToken(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * Makes the SHA-256 digest of a token, one character per byte. Tokens are kept and compared as digests
 * only.
 */
export function hashToken(token: string): string {
  return hash('sha256', token, 'latin1');
}

/**
 * Reads an entry of a token list: the token itself or `sha256:HEX` of it.
 *
 * @returns the digest as {@link hashToken} makes it, or undefined when the entry is invalid
 */
export function parseTokenEntry(entry: string): string | undefined {
  const [, hex] = /^sha256:([0-9a-f]{64})$/i.exec(entry) ?? [];
  if (hex !== undefined) return Buffer.from(hex, 'hex').toString('latin1');
  return TOKEN.test(entry) ? hashToken(entry) : undefined;
}

/** Writes a digest as an entry of a token list: `sha256:HEX`. */
export function formatTokenEntry(digest: string): string {
  return `sha256:${Buffer.from(digest, 'latin1').toString('hex')}`;
}
