import type { JSONWebKeySet, JWTHeaderParameters, JWTPayload } from 'jose';
import { LruMap } from 'toad-cache';
import { InvalidTokenError, PlantStoreError } from '../errors/errors';
import type { ServiceAuthOptions } from './auth.options';
import type { BearerToken } from './bearer-token';
import type { Grant } from './caller';
import { IssuerKeys, type Jose, loadJose } from './issuer-keys';

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
/**
 * Header, payload and signature, RFC 7515 section 3.1. A byte order mark is not JSON, but jose would ignore it:
 * `77u_` is its beginning in Base64url.
 */
const COMPACT_JWS = /^(?!77u_)[\w-]+\.(?!77u_)[\w-]+\.[\w-]+$/;
/** Claims of ID tokens and logout tokens that access tokens do not have. */
const NON_ACCESS_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events'];
/** The maximum number of accepted JWTs in the cache. The least recently used are evicted first. */
const MAX_CACHED_JWTS = 10_000;

interface AcceptedToken extends Grant {
  /** Milliseconds since 1970. */
  readonly expires: number;
  /** The keys it was verified with. After a new fetch, the token is verified again. */
  readonly keys: JSONWebKeySet | undefined;
}

/**
 * Accepts the JWT access tokens of one OpenID Connect issuer, RFC 9068, and follows the practices of
 * RFC 8725. Accepted tokens are cached by their digest. Rejected tokens are not cached.
 */
export class JwtVerifier {
  readonly keys: IssuerKeys;
  private readonly accepted = new LruMap<AcceptedToken>(MAX_CACHED_JWTS);

  constructor(private readonly options: JwtOptions) {
    this.keys = new IssuerKeys(options.issuer, options.jwksUrl);
  }

  /**
   * Verifies the signature and the claims of a token.
   *
   * @returns undefined when the token is not a JWT
   * @throws InvalidTokenError when the JWT is not valid
   * @throws UnavailableError when the keys of the issuer are not available
   */
  async verify(token: BearerToken): Promise<Grant | undefined> {
    // Read the keys before verifying: a concurrent fetch may drop the key that signed this token.
    const keys = this.keys.current;
    const accepted = this.accepted.get(token.digest);
    if (keys !== undefined && accepted?.keys === keys && accepted.expires > Date.now()) {
      return accepted;
    }
    if (!COMPACT_JWS.test(token.text)) return undefined;
    const { issuer, audience } = this.options;
    const { errors, jwtVerify } = await loadJose();
    try {
      const { payload, protectedHeader } = await jwtVerify(token.text, await this.keys.open(), {
        issuer,
        audience: [audience].flat(),
        algorithms: ALGORITHMS,
        requiredClaims: ['exp'],
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
      });
      assertAccessToken(protectedHeader, payload);

      // RFC 9068 section 2.2 requires both; `sub` identifies the client when there is no user.
      const name = [payload.sub, payload.client_id].find((value) => typeof value === 'string');
      const caller =
        name === undefined
          ? { name: 'unnamed', issuer, tokenDigest: token.digest }
          : { name, issuer };
      const expires = ((payload.exp ?? 0) + CLOCK_TOLERANCE_SECONDS) * 1000;
      const verified = { caller, expires, keys, missingScopes: this.findMissingScopes(payload) };
      this.accepted.set(token.digest, verified);
      return verified;
    } catch (error) {
      if (error instanceof PlantStoreError) throw error;
      // Omits the cause, because causes are logged and it may contain the claims of the token.
      throw new InvalidTokenError(publicReason(error, errors));
    }
  }

  private findMissingScopes({ scope, scp }: JWTPayload): Grant['missingScopes'] {
    // RFC 9068 section 2.2.3 defines one string. Some issuers use "scp" or an array.
    const values = [scope, scp].flat().filter((value) => typeof value === 'string');
    const granted = values.flatMap((value) => value.split(' '));
    const { scope: create, metricsScope: metrics = create } = this.options;
    const required = Object.entries({ create, metrics });
    return Object.fromEntries(
      required.filter(([, tokens]) => tokens?.split(' ').some((each) => !granted.includes(each))),
    );
  }
}

/**
 * RFC 9068 requires the type `at+jwt`. A token without that type is accepted unless a claim shows that it is
 * another kind of token.
 *
 * @throws InvalidTokenError when the token is not an access token
 */
function assertAccessToken({ typ, crit }: JWTHeaderParameters, claims: JWTPayload): void {
  const type = typ?.toLowerCase().replace(/^application\//, '') ?? 'jwt';
  const isUntypedAccessToken =
    type === 'jwt' &&
    !NON_ACCESS_TOKEN_CLAIMS.some((claim) => claim in claims) &&
    // Keycloak (`typ`) and Amazon Cognito (`token_use`) state the kind of token in these claims.
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

/** Explains why the token was rejected, as far as the caller may know. */
function publicReason(error: unknown, errors: Jose['errors']): string | undefined {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (error instanceof errors.JWTClaimValidationFailed) {
    return `The token's claim ${error.claim} is missing or invalid.`;
  }
  return undefined;
}
