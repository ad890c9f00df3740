import type { Caller } from './token-verifier';

/** The identities of callers that have no name of their own. */
const identities = new WeakMap<Caller, string>();

/**
 * Marks a caller as one without a name of its own. A description such as "token 1" takes the place of
 * its name, and may describe another token tomorrow. Its digest stays out of the caller, which hosts
 * may log.
 */
export function identifyByToken(caller: Caller, tokenDigest: string): Caller {
  identities.set(caller, `"token","${Buffer.from(tokenDigest, 'latin1').toString('hex')}"`);
  return caller;
}

/**
 * What identifies a caller over time and across instances: issuer and name, or the digest of a token
 * without a name. No two callers have the same.
 *
 * @returns strings and null as JSON, with commas between them, ready to stand in an array
 */
export function identityOf(caller: Caller): string {
  return (
    identities.get(caller) ??
    `"name",${JSON.stringify(caller.issuer ?? null)},${JSON.stringify(caller.name)}`
  );
}
