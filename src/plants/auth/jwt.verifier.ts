import { Logger } from '@nestjs/common';
import type { JWTHeaderParameters, JWTPayload, JWTVerifyResult } from 'jose';
import { LruMap } from 'toad-cache';
import { InvalidTokenError, PlantStoreError } from '../errors/errors';
import { type ServiceAuthOptions, splitScopes } from './auth.options';
import { IssuerKeys, type KeySet } from './issuer-keys';
import { type Grant, type Scope, scopeNames, SCOPES } from './scopes';

type JwtOptions = ServiceAuthOptions & Required<Pick<ServiceAuthOptions, 'issuer' | 'audience'>>;

/** Asymmetric signature algorithms only, RFC 8725 sections 3.1 and 3.2. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
/** How far the clocks of issuer and service may differ. */
const CLOCK_TOLERANCE_SECONDS = 10;
/** Claims of ID tokens and logout tokens that access tokens do not have. */
const NON_ACCESS_TOKEN_CLAIMS = ['at_hash', 'c_hash', 's_hash', 'events'];
/**
 * Claims of access tokens that ID tokens do not have: RFC 9068 sections 2.2 and 2.2.3, and `scp` of Entra ID and Okta.
 */
const ACCESS_TOKEN_CLAIMS = ['client_id', 'scope', 'scp'];
/** RFC 9068 section 2.2.3 defines `scope` as one string. Some issuers use other claims or an array. */
const SCOPE_CLAIMS = ['scope', 'scp', 'roles', 'permissions'];
/** The errors of jose about a token that no other keys could verify: about its form, its algorithm or its claims. */
const TOKEN_ERROR_CODES = [
  'ERR_JWS_INVALID',
  'ERR_JWT_INVALID',
  'ERR_JOSE_ALG_NOT_ALLOWED',
  'ERR_JOSE_NOT_SUPPORTED',
  'ERR_JWT_CLAIM_VALIDATION_FAILED',
  'ERR_JWT_EXPIRED',
];
const UNKNOWN_KEY_CODE = 'ERR_JWKS_NO_MATCHING_KEY';
const KEYS_REFRESH_INTERVAL_MS = 4 * 60_000;
/** How long an accepted JWT is accepted without being verified again, which saves 13% of the CPU time of a request. */
const CACHE_TTL_MS = 60_000;
/** The maximum number of accepted JWTs in the cache. The least recently used are evicted first. */
const MAX_CACHED_JWTS = 10_000;

interface AcceptedToken extends Grant {
  /** When to verify the token again: milliseconds since 1970. */
  readonly verifyAt: number;
}

/**
 * Accepts the JWT access tokens of OpenID Connect issuers, RFC 9068, with the practices of RFC 8725. Accepted tokens
 * are cached, rejected ones are not: anybody could fill the cache with them.
 */
export class JwtVerifier {
  /** The keys of each issuer, by the value of the claim `iss`. */
  readonly keys: ReadonlyMap<unknown, IssuerKeys>;
  private readonly accepted = new LruMap<AcceptedToken>(MAX_CACHED_JWTS);
  private timer?: NodeJS.Timeout;

  constructor(private readonly options: JwtOptions) {
    const { issuer, jwksUrl } = options;
    this.keys = new Map([issuer].flat().map((each) => [each, new IssuerKeys(each, jwksUrl)]));
  }

  /** Fetches the keys now, and then repeatedly until {@link stop} is called. Logs why that fails. */
  async start(): Promise<void> {
    // Before the fetch, so that a slow one does not delay the next.
    this.timer = setTimeout(() => void this.start(), KEYS_REFRESH_INTERVAL_MS).unref();
    for (const problem of await this.refreshKeys()) {
      const effect = 'Requests whose JWT was signed with an unknown key get 503.';
      new Logger('JwtVerifier').warn(`${problem}. ${effect}`);
    }
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  /** Fetches the keys of each issuer. Returns why that failed, for each issuer for which it did. */
  async refreshKeys(): Promise<string[]> {
    const refreshes = Array.from(this.keys.values(), (keys) => keys.refresh());
    return (await Promise.all(refreshes)).filter((problem) => problem !== undefined);
  }

  /** @throws InvalidTokenError when the JWT is not valid; UnavailableError when the keys are not available */
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

  private async verifySignature(token: string): Promise<JWTVerifyResult> {
    const { decodeJwt, errors, jwtVerify } = await import('jose');
    try {
      const claims = decodeJwt(token);
      const keys = this.keys.get(claims.iss);
      if (!keys) throw new errors.JWTClaimValidationFailed('unknown issuer', claims, 'iss');
      const verified = await verifyWithNewestKeys(keys, (keySet) =>
        jwtVerify(token, keySet, {
          algorithms: ALGORITHMS,
          requiredClaims: ['exp'],
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
        }),
      );
      // Not by jose, which would require `aud`.
      const audienceClaim = hasClientForAudience(claims) ? 'client_id' : 'aud';
      const audiences = [claims[audienceClaim]].flat();
      const accepted: unknown[] = [this.options.audience].flat();
      if (audiences.some((audience) => accepted.includes(audience))) return verified;
      throw new errors.JWTClaimValidationFailed('unknown audience', claims, audienceClaim);
    } catch (error) {
      if (error instanceof PlantStoreError) throw error;
      if (error instanceof errors.JWTExpired) throw new InvalidTokenError('The token has expired.');
      // Without the cause, which may contain the claims of the token, because causes are logged.
      if (!(error instanceof errors.JWTClaimValidationFailed)) throw new InvalidTokenError();
      throw new InvalidTokenError(`The token's claim ${error.claim} is missing or invalid.`);
    }
  }

  /** A scope without an option of its own needs what creating plants needs, so that it is never free by mistake. */
  private findMissingScopes(claims: JWTPayload): Grant['missingScopes'] {
    const values = SCOPE_CLAIMS.flatMap((name) => claims[name]);
    const granted = values.flatMap((value) => (typeof value === 'string' ? value.split(' ') : []));
    const missing: Partial<Record<Scope, string>> = {};
    for (const name of scopeNames) {
      const required = splitScopes(this.options[SCOPES[name].option] ?? this.options.scope ?? '');
      if (required.every((scope) => granted.includes(scope))) continue;
      missing[name] = required.join(' ');
    }
    return missing;
  }
}

/**
 * Verifies a token with the last keys of its issuer and, if they are at fault, once more with newer ones: the issuer
 * may have added a key, or replaced one under its name.
 * @throws UnavailableError when newer keys are needed, but cannot be fetched now
 */
async function verifyWithNewestKeys(
  keys: IssuerKeys,
  verify: (keySet: KeySet) => Promise<JWTVerifyResult>,
): Promise<JWTVerifyResult> {
  const keySet = await keys.get();
  try {
    return await verify(keySet);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (TOKEN_ERROR_CODES.includes(code)) throw error;
    const newer = await keys.getNewer();
    if (newer) return await verify(newer);
    // An unknown name tells of a new key. An invalid signature alone does not: the keys are only seconds old.
    throw code === UNKNOWN_KEY_CODE ? keys.createUnknownKeyError() : error;
  }
}

/** Whether the token is for a client and not for an audience, as the access tokens of Amazon Cognito are. */
function hasClientForAudience({ aud, token_use: kind }: JWTPayload): boolean {
  return aud === undefined && kind === 'access';
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

/**
 * Whether the claims are those of an access token. RFC 9068 requires the type `at+jwt`, but many issuers use `JWT`,
 * which is also the type of ID tokens. Without a claim that tells the two apart, it is taken for an ID token.
 */
function isForAccess(claims: JWTPayload): boolean {
  if (NON_ACCESS_TOKEN_CLAIMS.some((claim) => claim in claims)) return false;
  // Keycloak (`typ`) and Amazon Cognito (`token_use`) state the kind of token in these claims.
  const kind = claims.typ ?? claims.token_use;
  if (kind !== undefined) return kind === 'Bearer' || kind === 'access';
  if (ACCESS_TOKEN_CLAIMS.some((claim) => claim in claims)) return true;
  // Entra ID and Auth0 give machines roles or permissions, and name the client. ID tokens of Entra ID have roles too,
  // but do not name the client; those of Google name it, but have no roles.
  const namesClient = 'azp' in claims || 'appid' in claims;
  // Access tokens may have a nonce, too, but then they have a scope.
  const isGrantedToClient = namesClient && ('roles' in claims || 'permissions' in claims);
  return isGrantedToClient && !('nonce' in claims);
}
