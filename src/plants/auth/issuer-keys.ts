import { Logger } from '@nestjs/common';
import type * as jose from 'jose';
import { UnavailableError } from '../errors/errors';
import { isTrustworthyUrl } from './auth.options';

/** How often the keys are fetched. A withdrawn key stays valid for this long. */
const REFRESH_INTERVAL_MS = 5 * 60_000;
/** The minimum time between two fetches. */
const FETCH_COOLDOWN_MS = 10_000;
/** How long the last keys are used while the issuer does not respond. */
const STALE_KEYS_MAX_AGE_MS = 60 * 60_000;
/** The maximum duration of a fetch, to the last byte of the keys. */
const FETCH_TIMEOUT_MS = 5000;
/** The maximum size of a response body after decompression. */
const MAX_RESPONSE_BYTES = 512 * 2 ** 10;

export type Jose = typeof jose;
type RemoteKeySet = ReturnType<Jose['createRemoteJWKSet']>;

/**
 * The public keys of an OpenID Connect issuer. They are fetched at startup, every five minutes, and when
 * a token was signed with an unknown key, but not within ten seconds after the last fetch. jose caches the
 * keys. This class adds how they are fetched, and a pause after a failed fetch, which jose lacks.
 */
export class IssuerKeys {
  private readonly logger = new Logger('IssuerKeys');
  private readonly closing = new AbortController();
  private remote?: RemoteKeySet;
  /** The keys that were fetched last. jose uses them, or is about to. */
  private fetched?: jose.JSONWebKeySet;
  private failure?: { readonly error: UnavailableError; readonly reason: string } | undefined;
  /** The end of the pause after a failed fetch, on the monotonic clock. */
  private pausedUntil = -Infinity;
  private timer?: NodeJS.Timeout;

  constructor(
    private readonly issuer: string,
    private readonly jwksUrl: string | undefined,
  ) {}

  /** Keeps the keys up to date from now on. */
  async start(): Promise<void> {
    await this.open();
    void this.refresh();
  }

  stop(): void {
    this.closing.abort();
    clearTimeout(this.timer);
  }

  /**
   * The latest keys, a new object after each fetch. Undefined if they are older than an hour, or while a
   * fetch is running: jose may still use the previous keys.
   */
  get current(): jose.JSONWebKeySet | undefined {
    return this.remote?.fresh && !this.remote.reloading ? this.fetched : undefined;
  }

  /** Returns jose's key set. It throws an UnavailableError when it cannot fetch the keys. */
  async open(): Promise<RemoteKeySet> {
    const { createRemoteJWKSet, customFetch } = await loadJose();
    // The URL is only a name here: discovery may find another one at each fetch.
    return (this.remote ??= createRemoteJWKSet(new URL(this.issuer), {
      timeoutDuration: FETCH_TIMEOUT_MS,
      cooldownDuration: FETCH_COOLDOWN_MS,
      cacheMaxAge: STALE_KEYS_MAX_AGE_MS,
      [customFetch]: this.fetch,
    }));
  }

  /** Fetches the keys now, and then repeatedly until {@link stop} is called. */
  private async refresh(): Promise<void> {
    this.pausedUntil = -Infinity;
    const reloaded = (await this.open()).reload();
    const pause = await reloaded.then(
      () => REFRESH_INTERVAL_MS,
      () => FETCH_COOLDOWN_MS,
    );
    if (this.closing.signal.aborted) return;
    this.timer = setTimeout(() => void this.refresh(), pause).unref();
  }

  /** Fetches and validates the keys itself, so that jose only ever gets a valid key set. */
  private readonly fetch: jose.FetchImplementation = async (_url, { signal: timeout }) => {
    if (this.failure && performance.now() < this.pausedUntil) throw this.failure.error;
    try {
      const signal = AbortSignal.any([timeout, this.closing.signal]);
      const url = this.jwksUrl ?? (await this.discover(signal));
      const jwks = this.withoutWeakKeys((await fetchJson(url, signal)) as jose.JSONWebKeySet);
      (await loadJose()).createLocalJWKSet(jwks);
      if (this.failure || !this.fetched) this.logger.log(`Fetched the keys of ${this.issuer}.`);
      this.failure = undefined;
      this.fetched = jwks;
      return Response.json(jwks);
    } catch (error) {
      throw this.fail(findRootMessage(error));
    }
  };

  /** Logs a failure, unless it has the same reason as the one before. */
  private fail(reason: string): UnavailableError {
    this.pausedUntil = performance.now() + FETCH_COOLDOWN_MS;
    if (reason !== this.failure?.reason && !this.closing.signal.aborted) {
      this.logger.warn(
        `The keys of ${this.issuer} cannot be fetched: ${reason}. Requests whose JWT was signed with an unknown key get 503. Retrying every ${FETCH_COOLDOWN_MS / 1000} s.`,
      );
    }
    const cause = new Error(`The keys of ${this.issuer} are not available: ${reason}`);
    this.failure = { reason, error: new UnavailableError({ cause }) };
    return this.failure.error;
  }

  /** Finds the URL of the keys: OpenID Connect Discovery, section 4. */
  private async discover(signal: AbortSignal): Promise<string> {
    const document = `${this.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const found = (await fetchJson(document, signal)) as Record<string, unknown>;
    const { issuer, jwks_uri: url } = found;
    if (issuer !== this.issuer) throw new Error('the discovery document is that of another issuer');
    if (typeof url !== 'string' || !isTrustworthyUrl(url)) {
      throw new Error('the discovery document has no jwks_uri with an https: URL');
    }
    return url;
  }

  /** Removes RSA keys that must not be used from a key set, and logs each of them. */
  private withoutWeakKeys(jwks: jose.JSONWebKeySet): jose.JSONWebKeySet {
    // jose rejects a value that is not a key set.
    if (!Array.isArray(jwks.keys)) return jwks;
    const keys = jwks.keys.filter((key: jose.JWK | null) => {
      const weakness = key?.kty === 'RSA' ? findRsaWeakness(key) : undefined;
      if (weakness === undefined) return true;
      const kid = JSON.stringify(key?.kid);
      this.logger.warn(`Ignored the key ${kid} of ${this.issuer}: ${weakness}.`);
      return false;
    });
    return { ...jwks, keys };
  }
}

/**
 * Loads the library for JWTs. Only hosts that trust an issuer install it, and some hosts run in test
 * runners that cannot load ES modules.
 */
export async function loadJose(): Promise<Jose> {
  try {
    return await import('jose');
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException;
    if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(code)) throw cause;
    throw new Error('An issuer of JWTs requires a library. Run: npm install jose', { cause });
  }
}

/**
 * Fetches a JSON document from a server that may be slow or compromised. Does not follow redirects: they
 * could lead to a server that the operator does not trust.
 *
 * @param signal ends the fetch, also while the body is read
 * @throws Error when the response is not 2xx, not JSON or too large
 */
async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const headers = { accept: 'application/json, application/jwk-set+json' };
  const response = await fetch(url, { redirect: 'error', headers, signal });
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > MAX_RESPONSE_BYTES) {
      throw new Error(`the response is larger than ${MAX_RESPONSE_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  if (!response.ok) throw new Error(`the response has the status ${response.status}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

/** Explains why an RSA key must not be used, RFC 8017 section 3.1 and RFC 7518 section 3.3. */
function findRsaWeakness({ n, e }: jose.JWK): string | undefined {
  const exponent = toInteger(e);
  if (exponent < 3n || exponent % 2n === 0n) return 'its exponent must be odd and at least 3';
  if (toInteger(n) < 1n << 2047n) return 'its modulus must have at least 2048 bits';
  return undefined;
}

/** Reads a Base64urlUInt, RFC 7518 section 2. */
function toInteger(text: unknown): bigint {
  const bytes = Buffer.from(typeof text === 'string' ? text : '', 'base64url');
  return BigInt(`0x0${bytes.toString('hex')}`);
}

/** Returns the message of the innermost cause, where fetch() hides the reason for a failure. */
function findRootMessage(error: unknown): string {
  const { cause, message, code, name } = error as NodeJS.ErrnoException;
  if (cause) return findRootMessage(cause);
  return message === '' ? (code ?? name) : message;
}
