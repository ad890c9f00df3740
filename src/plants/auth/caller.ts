import { createParamDecorator } from '@nestjs/common';

/** The caller of a request. Never holds the token. */
export interface Caller {
  /** The name in the token list, or the subject of a JWT. */
  readonly name: string;
  /** The issuer of the JWT; absent when the token is in a list of the operator. */
  readonly issuer?: string;
  /**
   * The SHA-256 digest of the token, for a caller without a name of its own: "token 1" may be another
   * token tomorrow. It identifies that caller, and belongs in no log.
   */
  readonly tokenDigest?: string;
}

/** A request whose caller our guard or one of the host may have found out. */
export interface RequestWithCaller {
  caller?: Partial<Caller>;
}

/** The caller of a request. What has no name is no caller. */
export const CallerOfRequest = createParamDecorator((_: unknown, context): Caller | undefined => {
  const { caller } = context.switchToHttp().getRequest<RequestWithCaller>();
  return typeof caller?.name === 'string' ? (caller as Caller) : undefined;
});

/** What tokens may be limited to: creating plants, and reading the metrics. */
export const scopes = ['create', 'metrics'] as const;
export type Scope = (typeof scopes)[number];

/** What a valid token stands for. */
export interface Grant {
  readonly caller: Caller;
  /** For each scope that the token lacks, the scope tokens that it would need, RFC 6749 section 3.3. */
  readonly missing: Readonly<Partial<Record<Scope, string>>>;
}

/**
 * What identifies a caller over time and across instances: issuer and name, or the digest of a token
 * without a name. No two callers have the same.
 */
export function identityOf({ name, issuer, tokenDigest }: Caller): readonly (string | null)[] {
  return tokenDigest === undefined ? ['name', issuer ?? null, name] : ['token', tokenDigest];
}
