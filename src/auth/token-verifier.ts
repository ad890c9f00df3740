import type { BearerToken } from './bearer-token';
import type { Scope } from './scope';

/** The caller of a request. Never holds the token. */
export interface Caller {
  /** Name of the caller: the name in the token list, or the subject of a JWT. */
  readonly name: string;
  /** The issuer of the JWT; absent when the token is in a list of the operator. */
  readonly issuer?: string;
}

/** Decides which bearer tokens are valid. The class is the injection token, too. */
export abstract class TokenVerifier {
  /**
   * Returns without a promise where it can, so that the guard does not wait for the event loop.
   *
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
