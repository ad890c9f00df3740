import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { type ServiceAuthOptions, validateAuthOptions } from './auth.options';
import type { BearerToken } from './bearer-token';
import { IssuerKeys } from './issuer-keys';
import { JwtVerifier } from './jwt.verifier';
import { TokenFileVerifier } from './token-file.verifier';
import { parseTokenEntry } from './token-digest';
import { type Scope, splitScopes } from './scope';
import { type ListedToken, TokenList } from './token-list';
import { type Caller, TokenVerifier } from './token-verifier';

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

  const { tokens = [], tokensFile, issuer, audience, jwksUrl, scope, metricsScope } = options;
  return new ConfiguredVerifier(
    new TokenList(tokens.map(toListedToken)),
    tokensFile === undefined ? undefined : new TokenFileVerifier(tokensFile),
    issuer === undefined || audience === undefined
      ? undefined
      : new JwtVerifier({ issuer, audience, jwksUrl, scope, metricsScope }),
  );
}

/** Tries one verifier after the other until one accepts the token. */
class ConfiguredVerifier extends TokenVerifier implements OnModuleInit, OnApplicationShutdown {
  constructor(
    private readonly list: TokenList,
    private readonly file: TokenFileVerifier | undefined,
    private readonly jwt: JwtVerifier | undefined,
  ) {
    super();
  }

  verify(token: BearerToken, scope?: Scope): Caller | undefined | Promise<Caller | undefined> {
    return (
      this.list.verify(token, scope) ??
      this.file?.verify(token, scope) ??
      this.jwt?.verify(token, scope)
    );
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

/**
 * Fetches the keys of an issuer once, as the verifier does.
 *
 * @internal
 * @throws Error saying why the verifier could not use them
 */
export async function assertKeysOfIssuer(
  issuer: string,
  jwksUrl: string | undefined,
): Promise<void> {
  const keys = new IssuerKeys(issuer, jwksUrl);
  try {
    await keys.fetchLatest();
  } catch (error) {
    throw (error as Error).cause ?? error;
  } finally {
    keys.onApplicationShutdown();
  }
}

function toListedToken(entry: string, index: number): ListedToken {
  const [token = '', ...fields] = entry.split(' ');
  const digest = parseTokenEntry(token);
  const split = splitScopes(fields);
  if (digest === undefined || split === undefined || split.rest.length > 0) {
    throw new TypeError(
      `tokens[${index}] must be a token or sha256:HEX, which scope=create or scope=metrics may follow`,
    );
  }
  return { digest, name: `token ${index + 1}`, isUnnamed: true, scopes: split.scopes };
}
