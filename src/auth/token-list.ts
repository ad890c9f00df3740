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

/** A {@link ListedToken} as it is compared. */
interface Entry {
  readonly digest: Buffer;
  readonly expires: number;
  readonly caller: Caller;
}

/** Accepts the tokens of a list that never changes. */
export class TokenList extends TokenVerifier {
  readonly size: number;
  private readonly byPrefix: ReadonlyMap<string, readonly Entry[]>;

  constructor(tokens: readonly ListedToken[]) {
    super();
    this.size = tokens.length;
    const entries = tokens.map(({ digest, name, expires = Infinity }) => ({
      digest: bytesOf(digest),
      expires,
      caller: { name },
    }));
    this.byPrefix = Map.groupBy(entries, ({ digest }) => prefixOf(digest.toString('latin1')));
  }

  /**
   * The time it takes tells at most whether 32 bits of a digest are known; whole digests are
   * compared in constant time.
   */
  verify({ digest }: BearerToken): Caller | undefined {
    const candidates = this.byPrefix.get(prefixOf(digest));
    if (candidates === undefined) return undefined;
    const bytes = bytesOf(digest);
    const listed = candidates.find((entry) => timingSafeEqual(entry.digest, bytes));
    if (listed !== undefined && listed.expires <= Date.now()) {
      throw new InvalidTokenError('The token has expired.');
    }
    return listed?.caller;
  }
}

const bytesOf = (digest: string): Buffer => Buffer.from(digest, 'latin1');
const prefixOf = (digest: string): string => digest.slice(0, 4);
