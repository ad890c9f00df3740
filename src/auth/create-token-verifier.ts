import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { authFaults, type AuthOptions } from './auth.options';
import type { BearerToken } from './bearer-token';
import { JwtVerifier } from './jwt.verifier';
import { TokenFileVerifier } from './token-file.verifier';
import { digestOfEntry } from './token-digest';
import { type ListedToken, TokenList } from './token-list';
import { type Finding, TokenVerifier } from './token-verifier';

/**
 * Makes the verifier that options ask for. Given to Nest as a provider, it follows its file and its
 * issuer from the start of the application until it has shut down.
 *
 * @example
 * ```ts
 * { provide: TokenVerifier, useFactory: () => createTokenVerifier({ tokensFile: 'tokens.txt' }) }
 * ```
 * @throws TypeError when the options contradict themselves; it shows nothing of a token
 * @throws TokenFileError when the token file cannot be used
 */
export function createTokenVerifier(options: AuthOptions): TokenVerifier {
  const faults = authFaults(options);
  if (faults.length > 0) throw new TypeError(faults.join('; '));

  const { tokens = [], tokensFile, issuer, audience, jwksUrl, scope } = options;
  return new ConfiguredVerifier(
    new TokenList(tokens.map(toListedToken)),
    tokensFile === undefined ? undefined : new TokenFileVerifier(tokensFile),
    issuer === undefined || audience === undefined
      ? undefined
      : new JwtVerifier({ issuer, audience, jwksUrl, scope }),
  );
}

/** Asks the verifiers in turn until one knows the token. */
class ConfiguredVerifier extends TokenVerifier implements OnModuleInit, OnApplicationShutdown {
  constructor(
    private readonly list: TokenList,
    private readonly file: TokenFileVerifier | undefined,
    private readonly jwt: JwtVerifier | undefined,
  ) {
    super();
  }

  verify(token: BearerToken): Finding | Promise<Finding> {
    return this.list.verify(token) ?? this.file?.verify(token) ?? this.jwt?.verify(token);
  }

  onModuleInit(): void {
    this.file?.onModuleInit();
    this.jwt?.onModuleInit();
  }

  onApplicationShutdown(): void {
    this.file?.onApplicationShutdown();
    this.jwt?.onApplicationShutdown();
  }
}

function toListedToken(entry: string, at: number): ListedToken {
  const digest = digestOfEntry(entry);
  if (digest === undefined) throw new TypeError(`tokens[${at}] must be a token or sha256:HEX`);
  return { digest, name: `token ${at + 1}` };
}
