/** The caller of a request. Never holds the token. */
export interface Caller {
  /** The name in the token list, or the subject of a JWT. */
  readonly name: string;
  /** The issuer of the JWT; absent when the token is in a list of the operator. */
  readonly issuer?: string;
  /**
   * The SHA-256 digest of a token without a name, in hexadecimal digits. It identifies the caller, because "token 1" may
   * be another token after a restart. It must not be logged.
   */
  readonly tokenDigest?: string;
}

/**
 * Returns what identifies a caller over time and across instances: issuer and name, or the digest of a token without a
 * name. No two callers have the same identity.
 */
export function identifyCaller({ name, issuer, tokenDigest }: Caller): readonly (string | null)[] {
  return tokenDigest === undefined ? ['name', issuer ?? null, name] : ['token', tokenDigest];
}
