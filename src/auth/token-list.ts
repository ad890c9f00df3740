import { timingSafeEqual } from 'node:crypto';
import { InvalidTokenError } from '../errors';
import type { BearerToken } from './bearer-token';
import { type Caller, TokenVerifier } from './token-verifier';

/** A token that the operator accepts. */
export interface ListedToken {
  /** Its SHA-256 digest, one character a byte. */
  readonly digest: string;
  /** What to call who presents it. */
  readonly name: string;
  /** When it ceases to be good, in milliseconds since 1970; absent when it never does. */
  readonly expires?: number | undefined;
}

/** Accepts the tokens of a list that never changes. */
export class TokenList extends TokenVerifier {
  private readonly byPrefix: ReadonlyMap<string, readonly ListedToken[]>;

  constructor(tokens: readonly ListedToken[]) {
    super();
    this.byPrefix = Map.groupBy(tokens, ({ digest }) => prefixOf(digest));
  }

  /**
   * The time it takes tells at most whether 32 bits of a digest are known; whole digests are
   * compared in constant time.
   */
  verify({ digest }: BearerToken): Caller | undefined {
    const listed = this.byPrefix
      .get(prefixOf(digest))
      ?.find((token) => timingSafeEqual(bytesOf(token.digest), bytesOf(digest)));
    if (listed?.expires !== undefined && listed.expires <= Date.now()) {
      throw new InvalidTokenError('The token has expired.');
    }
    return listed && { name: listed.name };
  }
}

const bytesOf = (digest: string): Buffer => Buffer.from(digest, 'latin1');
const prefixOf = (digest: string): string => digest.slice(0, 4);
