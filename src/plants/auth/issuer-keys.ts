import type { JSONWebKeySet, JWTVerifyGetKey } from 'jose';
import { UnavailableError, UnknownKeyError } from '../errors/errors';
import { findBlockedPort } from './blocked-ports';
import { isTrustworthyUrl } from './auth.options';

/** The time limit of each request to an issuer. */
const FETCH_TIMEOUT_MS = 5000;
/** The minimum time after an attempt to fetch keys before a token can cause another attempt. */
const COOLDOWN_MS = 10_000;
/** The longest `Retry-After` of an issuer that is honored. */
const MAX_COOLDOWN_MS = 60_000;
/** How long keys are used while the issuer is down. */
const MAX_AGE_MS = 60 * 60_000;

/** The keys that an issuer published at one time. Finds the key of a token for jose. */
export type KeySet = JWTVerifyGetKey;

/** A response of an issuer that cannot be used. */
class FetchError extends Error {
  /** @param retryAfterMs how long the issuer asks not to be called; undefined if it does not say */
  constructor(
    message: string,
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }
}

/**
 * The public keys of an OpenID Connect issuer. It keeps the last keys that were fetched, and what the last attempt to
 * fetch them came to. After each attempt, tokens cause no other one during a cooldown, whatever they contain and however
 * the attempt ended. {@link refresh} does not wait for the cooldown.
 */
export class IssuerKeys {
  /** Whether the last attempt to fetch the keys succeeded. */
  isValid = false;
  private keySet?: KeySet;
  /** Why the last attempt failed; undefined if it succeeded. */
  private failure?: Error | undefined;
  /** The attempt in progress. */
  private fetching?: Promise<KeySet> | undefined;
  // Both in milliseconds of a clock that nobody sets, which began with 0.
  private fetchedAt = 0;
  private cooldownEndsAt = 0;

  constructor(
    private readonly issuer: string,
    private readonly jwksUrl: string | undefined,
  ) {}

  /** Fetches the keys from the URL that the issuer states now. Returns why that failed, if it did. */
  refresh(): Promise<string | undefined> {
    return this.fetch().then(
      () => undefined,
      (error: unknown) => (error as Error).message,
    );
  }

  /** Returns the last keys, or fetches them if they are too old. @throws UnavailableError when that fails */
  async get(): Promise<KeySet> {
    const isFresh = performance.now() < this.fetchedAt + MAX_AGE_MS;
    if (this.keySet && isFresh) return this.keySet;
    return (await this.fetchAfterCooldown()) ?? this.reject();
  }

  /**
   * Fetches the keys again, for a token that the last ones could not verify: the issuer may have changed them. Returns
   * undefined if they were fetched less than a cooldown ago.
   * @throws UnavailableError when the last attempt failed
   */
  async getNewer(): Promise<KeySet | undefined> {
    const keySet = await this.fetchAfterCooldown();
    return keySet ?? (this.failure ? this.reject() : undefined);
  }

  /** Creates the error of a token that names a key which the issuer may have published since the last fetch. */
  createUnknownKeyError(): UnknownKeyError {
    return new UnknownKeyError(this.secondsToWait());
  }

  /** Returns undefined during the cooldown. @throws UnavailableError when the attempt fails */
  private async fetchAfterCooldown(): Promise<KeySet | undefined> {
    if (!this.fetching && performance.now() < this.cooldownEndsAt) return undefined;
    return this.fetch().catch(() => this.reject());
  }

  private reject(): never {
    throw new UnavailableError({ cause: this.failure, retryAfter: this.secondsToWait() });
  }

  private secondsToWait(): number {
    const seconds = Math.ceil((this.cooldownEndsAt - performance.now()) / 1000);
    return Math.max(1, seconds);
  }

  /** Joins the attempt in progress, or begins one. @throws Error with a sentence without a full stop */
  private fetch(): Promise<KeySet> {
    this.fetching ??= this.attempt().finally(() => {
      this.fetching = undefined;
    });
    return this.fetching;
  }

  private async attempt(): Promise<KeySet> {
    try {
      this.keySet = await fetchKeySet(this.jwksUrl ?? (await discoverKeysUrl(this.issuer)));
      this.failure = undefined;
      this.fetchedAt = performance.now();
      this.cooldownEndsAt = this.fetchedAt + COOLDOWN_MS;
      return this.keySet;
    } catch (error) {
      const { message } = error as Error;
      this.failure = new Error(`The keys of ${this.issuer} cannot be fetched: ${message}`);
      const asked = error instanceof FetchError ? error.retryAfterMs : undefined;
      const cooldown = Math.min(Math.max(asked ?? 0, COOLDOWN_MS), MAX_COOLDOWN_MS);
      this.cooldownEndsAt = performance.now() + cooldown;
      throw this.failure;
    } finally {
      this.isValid = this.failure === undefined;
    }
  }
}

/** @throws Error when the issuer does not respond with keys */
async function fetchKeySet(url: string): Promise<KeySet> {
  const { createLocalJWKSet } = await import('jose');
  const document = await fetchJson(url);
  try {
    return createLocalJWKSet(document as JSONWebKeySet);
  } catch {
    throw new FetchError(`${url} is not a JSON Web Key Set`);
  }
}

/** OpenID Connect Discovery, section 4. @throws Error when the issuer does not respond with the URL of its keys */
async function discoverKeysUrl(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const document = (await fetchJson(url)) as { issuer?: unknown; jwks_uri?: unknown } | null;
  const { issuer: found, jwks_uri: keysUrl } = document ?? {};
  if (found !== issuer) {
    throw new FetchError(`${url} names ${JSON.stringify(found)} as its issuer`);
  }
  if (typeof keysUrl !== 'string' || !isTrustworthyUrl(keysUrl)) {
    throw new FetchError(`${url} has no jwks_uri with an https: URL`);
  }
  const port = findBlockedPort(keysUrl);
  if (port === undefined) return keysUrl;
  throw new FetchError(`${url} has a jwks_uri with the port ${port}, which Node.js does not allow`);
}

/**
 * Follows no redirect, which could lead to a server that is not trusted.
 * @throws Error when the URL does not respond with JSON in time
 */
async function fetchJson(url: string): Promise<unknown> {
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS);
  const headers = { accept: 'application/json' };
  let text: string;
  try {
    const response = await fetch(url, { headers, redirect: 'manual', signal });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new FetchError(
        `${url} responds with the status ${response.status}`,
        readDelay(response),
      );
    }
    text = await response.text();
  } catch (error) {
    if (error instanceof FetchError) throw error;
    // The error of fetch() is only `fetch failed`.
    const { message, code = '' } = ((error as Error).cause ?? error) as NodeJS.ErrnoException;
    throw new FetchError(`${url} does not respond: ${message || code}`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new FetchError(`${url} does not respond with JSON`);
  }
}

/** Reads `Retry-After`, RFC 9110 section 10.2.3, in milliseconds. Undefined if it is missing or malformed. */
function readDelay({ headers }: Response): number | undefined {
  const value = headers.get('retry-after') ?? '';
  const delay = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(delay) ? undefined : delay;
}
