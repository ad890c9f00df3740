/** Who calls. Never holds the token. */
export interface Caller {
  /** What to call the caller in a log. */
  readonly name: string;
}

/** Decides which bearer tokens are good: the port to whoever issues them, and its injection token. */
export abstract class TokenVerifier {
  /**
   * @param token the credentials, well-formed by RFC 6750 section 2.1
   * @returns the caller, or undefined when the token is no good
   */
  abstract verify(token: string): Caller | undefined | Promise<Caller | undefined>;
}
