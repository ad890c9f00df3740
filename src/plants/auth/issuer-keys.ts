import { Logger } from '@nestjs/common';
import type * as jose from 'jose';
import { UnavailableError } from '../errors/errors';
import { isTrustworthyUrl } from './auth.options';

/** How often the keys are fetched, in milliseconds. A withdrawn key stays valid for this long. */
const REFRESH_INTERVAL = 5 * 60_000;
/** The minimum time between two fetches, in milliseconds. */
const COOLDOWN = 10_000;
/** How long the last keys are used while the issuer does not respond, in milliseconds. */
const GRACE_PERIOD = 60 * 60_000;
/** Milliseconds, to the last byte of the keys. */
const TIMEOUT = 5000;
/** The largest response body, in bytes after decompression. */
const SIZE_LIMIT = 512 * 2 ** 10;

export type Jose = typeof jose;
type RemoteKeySet = ReturnType<Jose['createRemoteJWKSet']>;

/**
 * The public keys of an OpenID Connect issuer. They are fetched at the start, every five minutes, and
 * when a token names an unknown key, but not within ten seconds after the last fetch. jose keeps them;
 * here is how they are fetched, and the pause after a failed fetch, which jose lacks.
 */
export class IssuerKeys {
  private readonly logger = new Logger('IssuerKeys');
  private readonly closing = new AbortController();
  private remote?: RemoteKeySet;
  /** What jose has fetched last, or is about to use. */
  private fetched?: jose.JSONWebKeySet;
  private failure?: { readonly error: UnavailableError; readonly fault: string } | undefined;
  /** Until when a failed fetch is not repeated, by the monotonic clock. */
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
   * The last keys, unless they are over an hour old; another object after each fetch. Undefined during a
   * fetch: jose may still use the keys before.
   */
  get current(): jose.JSONWebKeySet | undefined {
    return this.remote?.fresh && !this.remote.reloading ? this.fetched : undefined;
  }

  /** jose's key set, which throws an UnavailableError when it cannot fetch the keys. */
  async open(): Promise<RemoteKeySet> {
    const { createRemoteJWKSet, customFetch } = await loadJose();
    // The URL is only a name: discovery may find another at each fetch.
    return (this.remote ??= createRemoteJWKSet(new URL(this.issuer), {
      timeoutDuration: TIMEOUT,
      cooldownDuration: COOLDOWN,
      cacheMaxAge: GRACE_PERIOD,
      [customFetch]: this.fetch,
    }));
  }

  /** Fetches the keys now, and then again and again. */
  private async refresh(): Promise<void> {
    this.pausedUntil = -Infinity;
    const reloaded = (await this.open()).reload();
    const pause = await reloaded.then(
      () => REFRESH_INTERVAL,
      () => COOLDOWN,
    );
    if (this.closing.signal.aborted) return;
    this.timer = setTimeout(() => void this.refresh(), pause).unref();
  }

  /** Finds every fault of the issuer's answer, so that jose gets only good answers. */
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

  /** Each fault is logged once in a row. */
  private fail(fault: string): UnavailableError {
    this.pausedUntil = performance.now() + COOLDOWN;
    if (fault !== this.failure?.fault && !this.closing.signal.aborted) {
      this.logger.warn(
        `The keys of ${this.issuer} cannot be fetched: ${fault}. Requests with a JWT that names an unknown key get 503. The service tries again every ${COOLDOWN / 1000} s.`,
      );
    }
    const cause = new Error(`The keys of ${this.issuer} are not available: ${fault}`);
    this.failure = { fault, error: new UnavailableError({ cause }) };
    return this.failure.error;
  }

  /** OpenID Connect Discovery section 4. */
  private async discover(signal: AbortSignal): Promise<string> {
    const document = `${this.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const found = (await fetchJson(document, signal)) as Record<string, unknown>;
    const { issuer, jwks_uri: url } = found;
    if (issuer !== this.issuer) throw new Error('the discovery document names another issuer');
    if (typeof url !== 'string' || !isTrustworthyUrl(url)) {
      throw new Error('the discovery document has no jwks_uri with an https: URL');
    }
    return url;
  }

  /** The key set without RSA keys that must not be used, each of which is logged. */
  private withoutWeakKeys(jwks: jose.JSONWebKeySet): jose.JSONWebKeySet {
    // jose refuses what is not a key set.
    if (!Array.isArray(jwks.keys)) return jwks;
    const keys = jwks.keys.filter((key: jose.JWK | null) => {
      const weakness = key?.kty === 'RSA' ? findRsaWeakness(key) : undefined;
      if (weakness === undefined) return true;
      const kid = JSON.stringify(key?.kid);
      this.logger.warn(`The key ${kid} of ${this.issuer} is ignored: ${weakness}.`);
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
    throw new Error('An issuer of JWTs needs a library: npm install jose', { cause });
  }
}

/**
 * Fetches a JSON document from a server that may be slow or compromised. It follows no redirect, which
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
    if (size > SIZE_LIMIT) throw new Error(`the response is larger than ${SIZE_LIMIT} bytes`);
    chunks.push(chunk);
  }
  if (!response.ok) throw new Error(`the response has the status ${response.status}`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

/** RFC 8017 section 3.1 and RFC 7518 section 3.3: why an RSA key must not be used. */
function findRsaWeakness({ n, e }: jose.JWK): string | undefined {
  const exponent = toInteger(e);
  if (exponent < 3n || exponent % 2n === 0n) return 'its exponent must be odd and at least 3';
  if (toInteger(n) < 1n << 2047n) return 'its modulus must have at least 2048 bits';
  return undefined;
}

/** RFC 7518 section 2: Base64urlUInt. */
function toInteger(text: unknown): bigint {
  const bytes = Buffer.from(typeof text === 'string' ? text : '', 'base64url');
  return BigInt(`0x0${bytes.toString('hex')}`);
}

/** The innermost cause has the reason why fetch() failed. */
function findRootMessage(error: unknown): string {
  const { cause, message, code, name } = error as NodeJS.ErrnoException;
  if (cause) return findRootMessage(cause);
  return message === '' ? (code ?? name) : message;
}
