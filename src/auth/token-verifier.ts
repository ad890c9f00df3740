import type { BearerToken } from './bearer.guard';

/** What tokens may be limited to: creating plants, and reading the metrics. */
export const scopes = ['create', 'metrics'] as const;
export type Scope = (typeof scopes)[number];

/** The caller of a request. Never holds the token. */
export interface Caller {
  /** The name in the token list, or the subject of a JWT. */
  readonly name: string;
  /** The issuer of the JWT; absent when the token is in a list of the operator. */
  readonly issuer?: string;
}

/** Decides which bearer tokens are valid; the injection token, too. */
export abstract class TokenVerifier {
  /**
   * @param scope what the caller wants to do; by default, create plants
   * @returns the caller, or undefined when the token is unknown
   * @throws InvalidTokenError when the token is invalid for a reason that the caller may know
   * @throws InsufficientScopeError when the token is valid but lacks the scope
   * @throws UnavailableError when the token cannot be verified now
   */
  abstract verify(
    token: BearerToken,
    scope?: Scope,
  ): Caller | undefined | Promise<Caller | undefined>;
}

const digests = new WeakMap<Caller, string>();

/**
 * Marks a caller as one without a name of its own: "token 1" may be another token tomorrow. The digest
 * stays out of the caller, which hosts may log.
 */
export function identifyByToken(caller: Caller, tokenDigest: string): Caller {
  digests.set(caller, tokenDigest);
  return caller;
}

/**
 * What identifies a caller over time and across instances: issuer and name, or the digest of a token
 * without a name. No two callers have the same.
 */
export function identityOf(caller: Caller): readonly (string | null)[] {
  const digest = digests.get(caller);
  return digest === undefined ? ['name', caller.issuer ?? null, caller.name] : ['token', digest];
}
