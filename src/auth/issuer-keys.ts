import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type * as jose from 'jose';
import { UnavailableError } from '../errors';
import { fetchJson, isTrustworthyUrl } from './fetch-json';

/** How often the keys are fetched, in milliseconds. A withdrawn key stays valid for this long. */
const REFRESH_INTERVAL = 5 * 60_000;
/** The minimum time between two fetches, in milliseconds. */
const COOLDOWN = 10_000;
/** How long the last keys are used while the issuer does not respond, in milliseconds. */
const GRACE_PERIOD = 60 * 60_000;

export type Jose = typeof jose;

/** Finds the key of a JWT in one version of the issuer's key set. */
export type KeySet = ReturnType<Jose['createLocalJWKSet']>;

/**
 * The public keys of an OpenID Connect issuer. They are fetched at the start, every five minutes, and
 * when a token names an unknown key, but not within ten seconds after the last fetch.
 *
 * `createRemoteJWKSet` of jose would save little code: its cooldown does not cover failed fetches, it does
 * not tell when the keys change, and it goes by the system clock, which can jump.
 */
export class IssuerKeys implements OnModuleInit, OnApplicationShutdown {
  private readonly logger = new Logger('IssuerKeys');
  private readonly closing = new AbortController();
  private keys?: { readonly set: KeySet; readonly json: string };
  /** Start times of fetches, by the monotonic clock. */
  private fetchedAt = -Infinity;
  private triedAt = -Infinity;
  private fetching?: Promise<void> | undefined;
  private fault?: string | undefined;
  private timer?: NodeJS.Timeout;

  constructor(
    private readonly issuer: string,
    private readonly jwksUrl: string | undefined,
  ) {}

  onModuleInit(): void {
    void this.refresh();
  }

  onApplicationShutdown(): void {
    this.closing.abort();
    clearTimeout(this.timer);
  }

  /** The last keys, unless they are over an hour old; the same object while the issuer has the same keys. */
  get current(): KeySet | undefined {
    return performance.now() - this.fetchedAt <= GRACE_PERIOD ? this.keys?.set : undefined;
  }

  /**
   * Fetches the keys, unless that was tried within the last ten seconds.
   * @throws UnavailableError when the last fetch failed
   */
  async fetchLatest(): Promise<KeySet> {
    await this.refresh();
    if (this.keys !== undefined && this.fault === undefined) return this.keys.set;
    const cause = new Error(`The keys of ${this.issuer} are not available: ${this.fault}`);
    throw new UnavailableError({ cause });
  }

  private async refresh(): Promise<void> {
    if (this.fetching === undefined && performance.now() - this.triedAt >= COOLDOWN) {
      this.fetching = this.fetch().finally(() => {
        this.fetching = undefined;
      });
    }
    await this.fetching;
  }

  private async fetch(): Promise<void> {
    clearTimeout(this.timer);
    this.triedAt = performance.now();
    try {
      const url = this.jwksUrl ?? (await this.discover());
      const jwks = (await fetchJson(url, this.closing.signal)) as jose.JSONWebKeySet;
      const json = JSON.stringify(jwks);
      if (json !== this.keys?.json) {
        const { createLocalJWKSet } = await loadJose();
        this.keys = { json, set: createLocalJWKSet(this.withoutWeakKeys(jwks)) };
        this.logger.log(`Fetched new keys of ${this.issuer}.`);
      } else if (this.fault !== undefined) {
        this.logger.log(`The keys of ${this.issuer} can be fetched again.`);
      }
      this.fetchedAt = this.triedAt;
      this.fault = undefined;
    } catch (error) {
      const fault = findRootMessage(error);
      // Each fault is logged once in a row.
      if (fault !== this.fault && !this.closing.signal.aborted) {
        this.logger.warn(
          `The keys of ${this.issuer} cannot be fetched: ${fault}. Requests with a JWT that names an unknown key get 503. The service tries again every ${COOLDOWN / 1000} s.`,
        );
      }
      this.fault = fault;
    }
    if (this.closing.signal.aborted) return;
    const pause = this.fault === undefined ? REFRESH_INTERVAL : COOLDOWN;
    this.timer = setTimeout(() => {
      // A timer may fire slightly before the monotonic clock says that the cooldown is over.
      this.triedAt = -Infinity;
      void this.refresh();
    }, pause).unref();
  }

  /** OpenID Connect Discovery section 4. */
  private async discover(): Promise<string> {
    const document = `${this.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const found = (await fetchJson(document, this.closing.signal)) as Record<string, unknown>;
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
 * Loads the library for JWTs, which only who trusts an issuer installs. Some hosts run in test runners
 * that cannot load ES modules.
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
