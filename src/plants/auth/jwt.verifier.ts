import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import type { JSONWebKeySet, JWTHeaderParameters, JWTPayload } from 'jose';
import { LruMap } from 'toad-cache';
import { InsufficientScopeError, InvalidTokenError, PlantStoreError } from '../errors/errors';
import type { ServiceAuthOptions } from './auth.options';
import type { BearerToken } from './bearer-token';
import { IssuerKeys, type Jose, loadJose } from './issuer-keys';
import { type Caller, identifyByToken } from './caller';
import { type Scope, scopes } from './token-verifier';

export type JwtOptions = Pick<ServiceAuthOptions, 'jwksUrl' | 'scope' | 'metricsScope'> & {
  readonly issuer: string;
  /** Any of them suffices. */
  readonly audience: string | readonly string[];
};

/** Asymmetric signature algorithms only, RFC 8725 sections 3.1 and 3.2. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
/** How far the clocks of issuer and service may differ, in seconds. */
const CLOCK_TOLERANCE = 10;
/**
 * RFC 7515 section 3.1: header, payload and signature. A byte order mark, which Base64url begins with
 * `77u_`, is not JSON; jose would ignore it.
 */
const COMPACT_JWS = /^(?!77u_)[\w-]+\.(?!77u_)[\w-]+\.[\w-]+$/;
/** Claims of ID tokens and logout tokens that access tokens do not have. */
const NON_ACCESS_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events'];

interface AcceptedToken {
  readonly caller: Caller;
  /** In milliseconds since 1970. */
  readonly expires: number;
  /** The keys at the time. When they have been fetched again, the token is verified again. */
  readonly keys: JSONWebKeySet | undefined;
  readonly scopes: readonly Scope[];
}

/**
 * Accepts the JWT access tokens of one OpenID Connect issuer, RFC 9068, and follows the practices of
 * RFC 8725. Accepted tokens are cached by their digest; refused ones are not.
 */
export class JwtVerifier implements OnModuleInit, OnApplicationShutdown {
  private readonly keys: IssuerKeys;
  private readonly accepted: LruMap<AcceptedToken>;

  /** @param cacheSize how many accepted tokens are cached; the least recently used go first */
  constructor(
    private readonly options: JwtOptions,
    cacheSize = 10_000,
  ) {
    this.keys = new IssuerKeys(options.issuer, options.jwksUrl);
    this.accepted = new LruMap(cacheSize);
  }

  async onModuleInit(): Promise<void> {
    await this.keys.onModuleInit();
  }

  onApplicationShutdown(): void {
    this.keys.onApplicationShutdown();
  }

  verify(token: BearerToken, scope: Scope = 'create'): Caller | undefined | Promise<Caller> {
    const { current } = this.keys;
    const accepted = this.accepted.get(token.digest);
    if (current !== undefined && accepted?.keys === current && accepted.expires > Date.now()) {
      return this.admit(accepted, scope);
    }
    return COMPACT_JWS.test(token.text) ? this.verifyJwt(token, scope, current) : undefined;
  }

  /** @param keys of before: what is fetched meanwhile may lack the key of the token */
  private async verifyJwt(
    token: BearerToken,
    scope: Scope,
    keys: JSONWebKeySet | undefined,
  ): Promise<Caller> {
    const { issuer, audience } = this.options;
    const { errors, jwtVerify } = await loadJose();
    try {
      const { payload, protectedHeader } = await jwtVerify(token.text, await this.keys.open(), {
        issuer,
        audience: [audience].flat(),
        algorithms: ALGORITHMS,
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_TOLERANCE,
      });
      assertAccessToken(protectedHeader, payload);

      // RFC 9068 section 2.2 requires both; `sub` identifies the client when there is no user.
      const name = [payload.sub, payload.client_id].find((value) => typeof value === 'string');
      const caller = { name: name ?? 'unnamed', issuer };
      if (name === undefined) identifyByToken(caller, token.digest);
      const expires = ((payload.exp ?? 0) + CLOCK_TOLERANCE) * 1000;
      const verified = { caller, expires, keys, scopes: this.findScopes(payload) };
      this.accepted.set(token.digest, verified);
      return this.admit(verified, scope);
    } catch (error) {
      if (error instanceof PlantStoreError) throw error;
      // Without the cause, which may hold the token's claims: causes are logged.
      throw new InvalidTokenError(describeRefusal(error, errors));
    }
  }

  private admit(token: AcceptedToken, scope: Scope): Caller {
    if (token.scopes.includes(scope)) return token.caller;
    throw new InsufficientScopeError(this.requiredFor(scope).join(' '), token.caller);
  }

  private findScopes({ scope, scp }: JWTPayload): Scope[] {
    // RFC 9068 section 2.2.3 has one string; some issuers use "scp" or an array.
    const values = [scope, scp].flat().filter((value) => typeof value === 'string');
    const granted = new Set(values.flatMap((value) => value.split(' ')));
    return scopes.filter((each) => this.requiredFor(each).every((token) => granted.has(token)));
  }

  /** The scope tokens that the issuer must grant. */
  private requiredFor(scope: Scope): string[] {
    const { scope: create, metricsScope = create } = this.options;
    return (scope === 'metrics' ? metricsScope : create)?.split(' ') ?? [];
  }
}

/** In RFC 9068 the type is `at+jwt`. Without it, a sign of another kind of token is enough to refuse. */
function assertAccessToken({ typ, crit }: JWTHeaderParameters, claims: JWTPayload): void {
  const type = typ?.toLowerCase().replace(/^application\//, '') ?? 'jwt';
  const isUntypedAccessToken =
    type === 'jwt' &&
    !NON_ACCESS_TOKEN_CLAIMS.some((claim) => claim in claims) &&
    // The claims of Keycloak and of Amazon Cognito for the kind of token.
    (claims.typ ?? 'Bearer') === 'Bearer' &&
    (claims.token_use ?? 'access') === 'access';
  if (crit !== undefined || (type !== 'at+jwt' && !isUntypedAccessToken)) {
    throw new InvalidTokenError('The token is not an access token.');
  }
  // RFC 7800 section 3.1
  if (claims.cnf !== undefined) {
    throw new InvalidTokenError(
      'The token is bound to a key (claim cnf). The service does not accept such tokens.',
    );
  }
}

/** What the caller may know. */
function describeRefusal(error: unknown, errors: Jose['errors']): string | undefined {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (error instanceof errors.JWTClaimValidationFailed) {
    return `The token's claim ${error.claim} is missing or invalid.`;
  }
  return undefined;
}
