import type { Caller } from './token-verifier';

/** The digests of the tokens of callers that have no name of their own. */
const tokenDigests = new WeakMap<Caller, string>();

/**
 * Marks a caller as one without a name of its own. A description such as "token 1" takes the place of
 * its name, and may describe another token tomorrow. Its digest stays out of the caller, which hosts
 * may log.
 */
export function identifyByToken(caller: Caller, tokenDigest: string): Caller {
  tokenDigests.set(caller, tokenDigest);
  return caller;
}

/**
 * What identifies a caller over time and across instances: issuer and name, or the digest of a token
 * without a name. No two callers have the same.
 */
export function identityOf(caller: Caller): readonly (string | null)[] {
  const digest = tokenDigests.get(caller);
  return digest === undefined
    ? ['name', caller.issuer ?? null, caller.name]
    : ['token', Buffer.from(digest, 'latin1').toString('hex')];
}
