import type { OnApplicationShutdown, OnModuleInit } from '@nestjs/common';
import { errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose';
import { LruMap } from 'toad-cache';
import { InsufficientScopeError, InvalidTokenError, PlantStoreError } from '../errors';
import type { BearerToken } from './bearer-token';
import { IssuerKeys, type KeySet } from './issuer-keys';
import { type Caller, type Finding, TokenVerifier } from './token-verifier';

/** Which JWTs a {@link JwtVerifier} accepts. */
export interface JwtOptions {
  /** The `iss` claim, and where the keys are discovered. */
  readonly issuer: string;
  /** A value of the `aud` claim. */
  readonly audience: string;
  /** Where the keys are, when discovery is not to tell. */
  readonly jwksUrl?: string | undefined;
  /** The scope tokens that are all needed, RFC 6749 section 3.3. */
  readonly scope?: string | undefined;
}

/** Signatures that the public key alone cannot forge, RFC 8725 sections 3.1 and 3.2. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
/** How far the clocks of issuer and service may differ, in seconds. */
const CLOCK_TOLERANCE = 10;

/** RFC 7515 section 3.1: header, payload and signature. */
const COMPACT_JWS = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** What an ID token or a logout token has and an access token has not. */
const FOREIGN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events'];

interface Accepted {
  readonly caller: Caller;
  /** In milliseconds since 1970. */
  readonly expires: number;
  /** The keys it was accepted by: when the issuer publishes others, it is judged again. */
  readonly keys: KeySet | undefined;
}

/**
 * Accepts the JWT access tokens of one OpenID Connect issuer, RFC 9068, with the care of RFC 8725.
 * A token once accepted is remembered by its digest; what is refused is not.
 */
export class JwtVerifier extends TokenVerifier implements OnModuleInit, OnApplicationShutdown {
  private readonly keys: IssuerKeys;
  private readonly accepted: LruMap<Accepted>;

  /** @param mostRemembered how many accepted tokens are remembered, those used last */
  constructor(
    private readonly options: JwtOptions,
    mostRemembered = 10_000,
  ) {
    super();
    this.keys = new IssuerKeys(options.issuer, options.jwksUrl);
    this.accepted = new LruMap(mostRemembered);
  }

  onModuleInit(): void {
    this.keys.onModuleInit();
  }

  onApplicationShutdown(): void {
    this.keys.onApplicationShutdown();
  }

  verify(token: BearerToken): Finding | Promise<Finding> {
    const { current } = this.keys;
    const accepted = this.accepted.get(token.digest);
    if (current !== undefined && accepted?.keys === current && accepted.expires > Date.now()) {
      return accepted.caller;
    }
    return COMPACT_JWS.test(token.text) ? this.judge(token) : undefined;
  }

  private async judge(token: BearerToken): Promise<Caller> {
    const { issuer, audience } = this.options;
    let keys: KeySet | undefined;
    try {
      const { payload, protectedHeader } = await jwtVerify(
        token.text,
        async (...jws) => {
          keys = this.keys.current ?? (await this.keys.latest());
          return keys(...jws).catch(async (error: unknown) => {
            if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
            keys = await this.keys.latest();
            return keys(...jws);
          });
        },
        {
          issuer,
          audience,
          algorithms: ALGORITHMS,
          requiredClaims: ['exp'],
          clockTolerance: CLOCK_TOLERANCE,
        },
      );
      if (!isAccessToken(protectedHeader, payload)) {
        throw new InvalidTokenError('The token is not an access token.');
      }
      this.requireScope(payload);

      const caller = { name: nameOf(payload), issuer };
      const expires = ((payload.exp ?? 0) + CLOCK_TOLERANCE) * 1000;
      this.accepted.set(token.digest, { caller, expires, keys });
      return caller;
    } catch (error) {
      // The cause is dropped: it may hold the token's claims, and causes are logged.
      throw error instanceof PlantStoreError ? error : new InvalidTokenError(messageOf(error));
    }
  }

  private requireScope({ scope, scp }: JWTPayload): void {
    if (this.options.scope === undefined) return;
    // RFC 9068 section 2.2.3 has one string; some issuers say "scp", or give an array.
    const values = [scope, scp].flat().filter((value) => typeof value === 'string');
    const granted = new Set(values.flatMap((value) => value.split(' ')));
    if (!this.options.scope.split(' ').every((needed) => granted.has(needed))) {
      throw new InsufficientScopeError(this.options.scope);
    }
  }
}

/**
 * Whether a verified JWT is an access token. RFC 9068 types them `at+jwt`; where an issuer does not,
 * what is told to be something else is refused.
 */
function isAccessToken({ typ, crit }: JWTHeaderParameters, claims: JWTPayload): boolean {
  if (crit !== undefined) return false;
  const type = typ?.toLowerCase().replace(/^application\//, '') ?? 'jwt';
  if (type !== 'jwt') return type === 'at+jwt';
  return (
    !FOREIGN_CLAIMS.some((claim) => claim in claims) &&
    // How Keycloak and Amazon Cognito tell.
    (claims.typ ?? 'Bearer') === 'Bearer' &&
    (claims.token_use ?? 'access') === 'access'
  );
}

/** RFC 9068 section 2.2: both are there, and `sub` is the client's own when it acts for no user. */
function nameOf({ sub, client_id }: JWTPayload): string {
  return [sub, client_id].find((value) => typeof value === 'string') ?? 'unnamed';
}

/** What is wrong with a JWT, as far as it helps an honest caller. */
function messageOf(error: unknown): string | undefined {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (error instanceof errors.JWTClaimValidationFailed) {
    return `The token's claim ${error.claim} is missing or not as it must be.`;
  }
  return undefined;
}
