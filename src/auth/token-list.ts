import { timingSafeEqual } from 'node:crypto';
import { InsufficientScopeError, InvalidTokenError } from '../errors';
import type { BearerToken } from './bearer-token';
import type { ListedToken } from './listed-token';
import { type Caller, identifyByToken, type Scope } from './token-verifier';

/** Accepts the tokens of an immutable list. */
export class TokenList {
  readonly size: number;
  private readonly byPrefix;

  constructor(tokens: readonly ListedToken[]) {
    this.size = tokens.length;
    const entries = tokens.map(({ digest, place, name, expires = Infinity, scopes }) => ({
      bytes: Buffer.from(digest, 'hex'),
      expires,
      scopes,
      caller: name === undefined ? identifyByToken({ name: place }, digest) : { name },
    }));
    this.byPrefix = Map.groupBy(entries, ({ bytes }) => bytes.readUInt32BE());
  }

  /**
   * As {@link TokenVerifier.verify}. Its duration reveals at most whether the first 32 bits of a digest
   * are in the list; whole digests are compared in constant time.
   */
  verify({ digest }: BearerToken, scope: Scope = 'create'): Caller | undefined {
    const wanted = Buffer.from(digest, 'hex');
    const listed = this.byPrefix
      .get(wanted.readUInt32BE())
      ?.find(({ bytes }) => timingSafeEqual(bytes, wanted));
    if (listed !== undefined && listed.expires <= Date.now()) {
      throw new InvalidTokenError('The token has expired.');
    }
    if (listed?.scopes?.includes(scope) === false) {
      throw new InsufficientScopeError(scope, listed.caller);
    }
    return listed?.caller;
  }
}
