import { timingSafeEqual } from 'node:crypto';
import { InsufficientScopeError, InvalidTokenError } from '../errors';
import type { BearerToken } from './bearer-token';
import type { Scope } from './scope';
import { type Caller, identifyByToken, TokenVerifier } from './token-verifier';

/** An accepted token in a list of the operator. */
export interface ListedToken {
  /** Its SHA-256 digest, in hexadecimal. */
  readonly digest: string;
  /** Name of the caller who uses it, or a description of the token. */
  readonly name: string;
  /** Whether the name is only a description, such as the position in the list. */
  readonly isUnnamed?: boolean | undefined;
  /** Time of expiry in milliseconds since 1970; absent when it never expires. */
  readonly expires?: number | undefined;
  /** Its scopes; absent when it has all. */
  readonly scopes?: readonly Scope[] | undefined;
}

/** A {@link ListedToken}, prepared for comparison. */
interface Entry {
  readonly digest: Buffer;
  readonly expires: number;
  readonly scopes: readonly Scope[] | undefined;
  readonly caller: Caller;
}

/** Accepts the tokens of an immutable list. */
export class TokenList extends TokenVerifier {
  /** Number of tokens. */
  readonly size: number;
  private readonly byPrefix: ReadonlyMap<string, readonly Entry[]>;

  constructor(tokens: readonly ListedToken[]) {
    super();
    this.size = tokens.length;
    const entries = tokens.map(({ digest, name, isUnnamed, expires = Infinity, scopes }) => ({
      digest: toBytes(digest),
      expires,
      scopes,
      caller: isUnnamed ? identifyByToken({ name }, digest) : { name },
    }));
    this.byPrefix = Map.groupBy(entries, ({ digest }) => toPrefix(digest.toString('hex')));
  }

  /**
   * Its duration reveals at most whether the first 32 bits of a digest are in the list; whole digests
   * are compared in constant time.
   */
  verify(token: BearerToken, scope: Scope = 'create'): Caller | undefined {
    const bytes = toBytes(token.digest);
    const listed = this.byPrefix
      .get(toPrefix(token.digest))
      ?.find(({ digest }) => timingSafeEqual(digest, bytes));
    if (listed !== undefined && listed.expires <= Date.now()) {
      throw new InvalidTokenError('The token has expired.');
    }
    if (listed?.scopes?.includes(scope) === false) throw new InsufficientScopeError(scope);
    return listed?.caller;
  }
}

const toBytes = (digest: string): Buffer => Buffer.from(digest, 'hex');
const toPrefix = (digest: string): string => digest.slice(0, 8);
