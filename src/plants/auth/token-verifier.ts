import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { LruMap } from 'toad-cache';
import { InvalidTokenError } from '../errors/errors';
import type { FileWatcher } from './file-watcher';
import type { ServiceAuthOptions } from './auth.options';
import type { IssuerKeys } from './issuer-keys';
import { JwtVerifier } from './jwt.verifier';
import type { Grant } from './scopes';
import { hashToken, openTokenFile, parseTokenList, TokenList } from './token-list';

/**
 * The maximum number of accepted tokens whose digests are cached. Hashing took 4% of the CPU time of a create request.
 */
const MAX_CACHED_DIGESTS = 1000;

/**
 * Accepts a token that any of the configured sources accepts. As a Nest provider, it watches the token file
 * and the keys of the issuers from the start of the application until its shutdown.
 */
export class TokenVerifier implements OnModuleInit, OnApplicationShutdown {
  private readonly list: TokenList;
  private readonly file?: FileWatcher<TokenList>;
  private readonly jwt?: JwtVerifier;
  private readonly digests = new LruMap<string>(MAX_CACHED_DIGESTS);

  /** @throws OptionError when the token file cannot be used. `validateAuthOptions` has checked the other options. */
  constructor(options: ServiceAuthOptions) {
    const { tokens = [], tokensFile, issuer, audience, ...others } = options;
    this.list = new TokenList('The token list', parseTokenList(tokens));
    if (tokensFile !== undefined) this.file = openTokenFile(tokensFile);
    if (issuer !== undefined && audience !== undefined) {
      this.jwt = new JwtVerifier({ issuer, audience, ...others });
    }
  }

  /**
   * Asks the list, the file and the issuers in this order. The first source that lists the token decides, even if the
   * token has expired there.
   * @throws InvalidTokenError when no source accepts the token; UnavailableError when it cannot be verified now
   */
  async verify(token: string): Promise<Grant> {
    const cached = this.digests.get(token);
    const digest = cached ?? hashToken(token);
    const listed = this.list.verify(digest) ?? this.file?.current.verify(digest);
    const grant = listed ?? (await this.jwt?.verify(token, digest));
    if (grant === undefined) throw new InvalidTokenError();
    // Only accepted tokens: others could push them out of the cache.
    if (cached === undefined) this.digests.set(token, digest);
    return grant;
  }

  /** The keys of each issuer, by its URL. */
  get issuerKeys(): ReadonlyMap<unknown, IssuerKeys> {
    return this.jwt?.keys ?? new Map<unknown, IssuerKeys>();
  }

  /** Whether the token file can be used as it is now; true if none is configured. */
  isFileValid(): boolean {
    return this.file?.isValid ?? true;
  }

  /** Whether a token file is configured, but no token in it is valid now. */
  isFileEmpty(): boolean {
    return this.file?.current.isEmpty() ?? false;
  }

  async onModuleInit(): Promise<void> {
    this.file?.start();
    if (!this.jwt) return;
    // Only hosts that trust an issuer install the library for JWTs.
    await import('jose').catch((cause: unknown) => {
      const { code = '' } = cause as NodeJS.ErrnoException;
      if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(code)) throw cause;
      throw new Error('An issuer of JWTs requires a library. Run: npm install jose', { cause });
    });
    // Not awaited: a start does not wait for issuers.
    void this.jwt.start();
  }

  onApplicationShutdown(): void {
    this.file?.stop();
    this.jwt?.stop();
  }
}
