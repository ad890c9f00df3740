import { Logger } from '@nestjs/common';
import type * as jose from 'jose';
import { UnavailableError } from '../errors/errors';
import { isTrustworthyUrl } from './auth.options';

/** How often the keys are fetched. */
const REFRESH_INTERVAL_MS = 4 * 60_000;
/** The minimum time after a fetch before an unknown key causes another one. */
const FETCH_COOLDOWN_MS = 10_000;
/** How long the last keys are used while the issuer does not respond. */
const STALE_KEYS_MAX_AGE_MS = 60 * 60_000;

type Jose = typeof jose;

/**
 * The public keys of an OpenID Connect issuer. jose fetches them when a token was signed with an unknown key, caches
 * them, and limits how long a fetch takes. This class adds discovery, the refresh and the log.
 */
export class IssuerKeys {
  private readonly logger = new Logger('IssuerKeys');
  private keySet?: jose.RemoteJWKSet;
  /** Why the last fetch failed. Undefined if it succeeded, empty before it. */
  private problem: string | undefined = '';
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

  private readonly fetch: jose.FetchImplementation = async (_url, request) => {
    try {
      const url = this.jwksUrl ?? (await this.discover(request));
      const found = await fetchJson(url, request);
      const keys: unknown = isObject(found) && found.keys;
      if (!Array.isArray(keys)) throw new Error('the response is not a key set');
      if (this.problem !== undefined) this.logger.log(`Fetched the keys of ${this.issuer}.`);
      this.problem = undefined;
      // jose would reject the whole set if one entry is not an object.
      return Response.json({ keys: keys.filter(isObject) });
    } catch (error) {
      const reason = findRootMessage(error);
      if (reason !== this.problem) {
        this.logger.warn(
          `The keys of ${this.issuer} cannot be fetched: ${reason}. Requests whose JWT was signed with an unknown key get 503.`,
        );
      }
      this.problem = reason;
      const cause = new Error(`The keys of ${this.issuer} are not available: ${reason}`);
      throw new UnavailableError({ cause });
    }
  };

  /** Finds the URL of the keys: OpenID Connect Discovery, section 4. */
  private async discover(request: RequestInit): Promise<string> {
    const document = `${this.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const found = await fetchJson(document, request);
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
 * Fetches a JSON document. jose's request does not follow redirects, which could lead to a server that the operator
 * does not trust.
 *
 * @throws Error when the response is not 2xx or not JSON
 */
async function fetchJson(url: string, request: RequestInit): Promise<unknown> {
  const response = await fetch(url, request);
  if (!response.ok) throw new Error(`the response has the status ${response.status}`);
  return response.json();
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
