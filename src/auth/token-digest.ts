import { hash, randomBytes } from 'node:crypto';

/** RFC 6750 section 2.1, b64token. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** Makes a token of 256 random bits. */
export function makeToken(): string {
  return randomBytes(32).toString('base64url');
}

/** The SHA-256 digest of a token, in hexadecimal. Tokens are stored and compared as digests only. */
export function hashToken(token: string): string {
  return hash('sha256', token);
}

/**
 * Reads an entry of a token list: the token itself or `sha256:HEX` of it.
 *
 * @returns the digest as {@link hashToken} makes it, or undefined when the entry is invalid
 */
export function parseTokenEntry(entry: string): string | undefined {
  const [, hex] = /^sha256:([0-9a-f]{64})$/i.exec(entry) ?? [];
  if (hex !== undefined) return hex.toLowerCase();
  return TOKEN.test(entry) ? hashToken(entry) : undefined;
}

/** Writes a digest as an entry of a token list: `sha256:HEX`. */
export function formatTokenEntry(digest: string): string {
  return `sha256:${digest}`;
}
