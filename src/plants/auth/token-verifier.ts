import type { BearerToken } from './bearer-token';
import type { Caller } from './caller';

/** What tokens may be limited to: creating plants, and reading the metrics. */
export const scopes = ['create', 'metrics'] as const;
export type Scope = (typeof scopes)[number];

/** Decides which bearer tokens are valid; the injection token, too. */
export abstract class TokenVerifier {
  /**
   * @param scope what the caller wants to do; by default, create plants
   * @returns the caller, or undefined when the token is unknown
   * @throws InvalidTokenError when the token is invalid for a reason that the caller may know
   * @throws InsufficientScopeError when the token is valid but lacks the scope
   * @throws UnavailableError when the token cannot be verified now
   */
  abstract verify(token: BearerToken, scope?: Scope): Promise<Caller | undefined>;
}
