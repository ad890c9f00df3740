import { timingSafeEqual } from 'node:crypto';
import { InvalidTokenError } from '../errors';
import { type BearerToken, isToken, tokenDigest } from './bearer-token';
import { type Caller, TokenVerifier } from './token-verifier';

/** A token that the operator accepts. */
export interface ListedToken {
  /** Its {@link tokenDigest}. */
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

/** The {@link tokenDigest} of an accepted token, given as the token itself or as `sha256:HEX` of it. */
export function digestOfEntry(entry: string): string | undefined {
  const [, hex] = /^sha256:([0-9a-f]{64})$/i.exec(entry) ?? [];
  if (hex !== undefined) return Buffer.from(hex, 'hex').toString('latin1');
  return isToken(entry) ? tokenDigest(entry) : undefined;
}

/** How a digest is written in a list: `sha256:HEX`. */
export function entryOfDigest(digest: string): string {
  return `sha256:${bytesOf(digest).toString('hex')}`;
}

const bytesOf = (digest: string): Buffer => Buffer.from(digest, 'latin1');
const prefixOf = (digest: string): string => digest.slice(0, 4);
