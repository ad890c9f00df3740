import { Logger } from '@nestjs/common';
import type * as jose from 'jose';
import { UnavailableError } from '../errors/errors';
import { isTrustworthyUrl } from './auth.options';

/** How often the keys are fetched. */
const REFRESH_INTERVAL_MS = 4 * 60_000;
/** The minimum time between two fetches, also after a failed one. */
const FETCH_COOLDOWN_MS = 10_000;
/** How long the last keys are used while the issuer does not respond. */
const STALE_KEYS_MAX_AGE_MS = 60 * 60_000;
/** The maximum size of a response body after decompression. */
const MAX_RESPONSE_BYTES = 512 * 2 ** 10;

type Jose = typeof jose;

/**
 * The public keys of an OpenID Connect issuer. jose fetches them when a token was signed with an unknown key, caches
 * them, and limits how long a fetch takes. This class adds discovery, the refresh, and what jose's fetch lacks: a pause
 * after a failure, no redirects, and a maximum size.
 */
export class IssuerKeys {
  private readonly logger = new Logger('IssuerKeys');
  private keySet?: jose.RemoteJWKSet;
  private hasFetched = false;
  private failure?:
    | { readonly error: UnavailableError; readonly reason: string; readonly retryAt: number }
    | undefined;
  private timer?: NodeJS.Timeout;

  constructor(
    private readonly issuer: string,
    private readonly jwksUrl: string | undefined,
  ) {}

  /** Fetches the keys now, and then repeatedly until {@link stop} is called. */
  async start(): Promise<void> {
    const keySet = await this.open();
    const refresh = (): void => {
      this.timer = setTimeout(refresh, REFRESH_INTERVAL_MS).unref();
      // A failure has been logged.
      keySet.reload().catch(() => undefined);
    };
    refresh();
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  /** Returns jose's key set. It throws an UnavailableError when it cannot fetch the keys. */
  async open(): Promise<jose.RemoteJWKSet> {
    const { createRemoteJWKSet, customFetch } = await loadJose();
    // The URL is only a name here: discovery may find another one at each fetch.
    return (this.keySet ??= createRemoteJWKSet(new URL(this.issuer), {
      cooldownDuration: FETCH_COOLDOWN_MS,
      cacheMaxAge: STALE_KEYS_MAX_AGE_MS,
      [customFetch]: this.fetch,
    }));
  }

  private readonly fetch: jose.FetchImplementation = async (_url, { signal }) => {
    if (this.failure && performance.now() < this.failure.retryAt) throw this.failure.error;
    try {
      const url = this.jwksUrl ?? (await this.discover(signal));
      const found = await fetchJson(url, signal);
      const keys: unknown = isObject(found) && found.keys;
      if (!Array.isArray(keys)) throw new Error('the response is not a key set');
      if (this.failure || !this.hasFetched) this.logger.log(`Fetched the keys of ${this.issuer}.`);
      this.failure = undefined;
      this.hasFetched = true;
      // jose would reject the whole set if one entry is not an object. With the RSA exponent 1, anybody can sign.
      return Response.json({ keys: keys.filter((key) => isObject(key) && key.e !== 'AQ') });
    } catch (error) {
      throw this.fail(findRootMessage(error));
    }
  };

  /** Logs a failure, unless it has the same reason as the one before. */
  private fail(reason: string): UnavailableError {
    if (reason !== this.failure?.reason) {
      this.logger.warn(
        `The keys of ${this.issuer} cannot be fetched: ${reason}. Requests whose JWT was signed with an unknown key get 503.`,
      );
    }
    const cause = new Error(`The keys of ${this.issuer} are not available: ${reason}`);
    const error = new UnavailableError({ cause });
    this.failure = { reason, error, retryAt: performance.now() + FETCH_COOLDOWN_MS };
    return error;
  }

  /** Finds the URL of the keys: OpenID Connect Discovery, section 4. */
  private async discover(signal: AbortSignal): Promise<string> {
    const document = `${this.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const found = await fetchJson(document, signal);
    const { issuer, jwks_uri: url } = isObject(found) ? found : {};
    if (issuer !== this.issuer) {
      throw new Error(
        `the discovery document is that of the issuer ${JSON.stringify(issuer)}, not of ${JSON.stringify(this.issuer)}`,
      );
    }
    if (typeof url !== 'string' || !isTrustworthyUrl(url)) {
      throw new Error('the discovery document has no jwks_uri with an https: URL');
    }
    return url;
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

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the message of the innermost cause, where fetch() hides the reason for a failure. */
function findRootMessage(error: unknown): string {
  const { cause, message, code, name } = error as NodeJS.ErrnoException;
  if (cause) return findRootMessage(cause);
  return message === '' ? (code ?? name) : message;
}
