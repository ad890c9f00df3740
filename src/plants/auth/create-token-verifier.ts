import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { type ServiceAuthOptions, validateAuthOptions } from './auth.options';
import type { BearerToken } from './bearer-token';
import { IssuerKeys } from './issuer-keys';
import { JwtVerifier } from './jwt.verifier';
import { parseTokenList, TokenList } from './listed-token';
import { TokenFile } from './token-file';
import type { Caller } from './caller';
import { type Scope, TokenVerifier } from './token-verifier';

/**
 * Creates the verifier for the options. As a provider of Nest it follows the token file and the keys
 * of the issuer from the start of the application until its shutdown.
 *
 * @example
 * ```ts
 * { provide: TokenVerifier, useFactory: () => createTokenVerifier({ tokensFile: 'tokens.txt' }) }
 * ```
 * @throws TypeError when the options are invalid; the message never shows a token
 * @throws TokenFileError when the token file cannot be used
 */
export function createTokenVerifier(options: ServiceAuthOptions): TokenVerifier {
  const faults = validateAuthOptions(options);
  if (faults.length > 0) throw new TypeError(faults.join('; '));
  return new ConfiguredVerifier(options);
}

/** Accepts a token that any of the configured sources accepts. */
class ConfiguredVerifier extends TokenVerifier implements OnModuleInit, OnApplicationShutdown {
  private readonly list: TokenList;
  private readonly file?: TokenFile;
  private readonly jwt?: JwtVerifier;

  constructor({ tokens = [], tokensFile, issuer, audience, ...others }: ServiceAuthOptions) {
    super();
    try {
      this.list = new TokenList(parseTokenList(tokens));
    } catch (cause) {
      throw new TypeError(`tokens: ${(cause as Error).message}`, { cause });
    }
    if (tokensFile !== undefined) this.file = new TokenFile(tokensFile);
    if (issuer !== undefined && audience !== undefined) {
      this.jwt = new JwtVerifier({ issuer, audience, ...others });
    }
  }

  async verify(token: BearerToken, scope?: Scope): Promise<Caller | undefined> {
    const listed = this.list.verify(token, scope) ?? this.file?.verify(token, scope);
    return listed ?? this.jwt?.verify(token, scope);
  }

  async onModuleInit(): Promise<void> {
    this.file?.onModuleInit();
    await this.jwt?.onModuleInit();
  }

  onApplicationShutdown(): void {
    this.file?.onApplicationShutdown();
    this.jwt?.onApplicationShutdown();
  }
}

// Here, because the declarations of issuer-keys name a package that a host need not have.
/** @throws Error saying why the verifier could not use the keys of an issuer */
export async function assertKeysOfIssuer(issuer: string, jwksUrl?: string): Promise<void> {
  const keys = new IssuerKeys(issuer, jwksUrl);
  try {
    await (await keys.open()).reload();
  } catch (error) {
    throw (error as Error).cause ?? error;
  } finally {
    keys.onApplicationShutdown();
  }
}
