import type { BearerToken } from './bearer-token';

/** Who calls. Never holds the token. */
export interface Caller {
  /** What to call the caller: the name in the list, or the subject of a JWT. */
  readonly name: string;
  /** The issuer that vouches for the name; absent when the operator's own list does. */
  readonly issuer?: string;
}

/** What a {@link TokenVerifier} finds: the caller, or undefined when it does not know the token. */
export type Finding = Caller | undefined;

/** Decides which bearer tokens are good: the port to whoever issues them, and its injection token. */
export abstract class TokenVerifier {
  /**
   * Answers at once where it can, so that the guard costs no turn of the event loop.
   *
   * @throws InvalidTokenError when it knows the token, and why it is no good
   * @throws InsufficientScopeError when the token is good, but not for this
   * @throws UnavailableError when it cannot tell now
   */
  abstract verify(token: BearerToken): Finding | Promise<Finding>;
}
