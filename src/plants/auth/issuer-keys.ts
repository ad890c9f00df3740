import type { JWTVerifyGetKey, RemoteJWKSet } from 'jose';
import { UnavailableError } from '../errors/errors';
import { isTrustworthyUrl } from './auth.options';

const DISCOVERY_TIMEOUT_MS = 5000;
/** After a fetch, when an unknown key may cause another one, and how long keys are used while the issuer is down. */
const KEY_SET_OPTIONS = { cooldownDuration: 10_000, cacheMaxAge: 60 * 60_000 };

/** The public keys of an OpenID Connect issuer. jose fetches and caches them; this adds discovery. */
export class IssuerKeys {
  /** Whether the last fetch succeeded. */
  isValid = false;
  private keySet?: RemoteJWKSet;
  private fetching?: Promise<RemoteJWKSet> | undefined;

  constructor(
    private readonly issuer: string,
    private readonly jwksUrl: string | undefined,
  ) {}

  /** Fetches the keys from the URL that the issuer states now. Returns why that failed; empty if it succeeded. */
  refresh(): Promise<string> {
    return this.fetch().then(() => '', this.explain);
  }

  /** Finds the key of a token for jose. @throws UnavailableError when the keys cannot be fetched */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    try {
      return await (this.keySet ?? (await this.fetch()))(header, token);
    } catch (error) {
      // jose cannot fetch the keys, unless it says that none or several of them match.
      if (/_MATCHING_KEYS?$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
      throw new UnavailableError({ cause: new Error(this.explain(error as Error)) });
    }
  };

  private fetch(): Promise<RemoteJWKSet> {
    const fetchKeys = async (): Promise<RemoteJWKSet> => {
      const { createRemoteJWKSet } = await import('jose');
      const url = this.jwksUrl ?? (await discoverKeysUrl(this.issuer));
      const keySet = createRemoteJWKSet(new URL(url), KEY_SET_OPTIONS);
      await keySet.reload();
      this.isValid = true;
      return (this.keySet = keySet);
    };
    this.fetching ??= fetchKeys().finally(() => (this.fetching = undefined));
    return this.fetching;
  }

  private readonly explain = (error: Error): string => {
    this.isValid = false;
    // The error of fetch() is only `fetch failed`.
    const { message, code = '' } = (error.cause ?? error) as NodeJS.ErrnoException;
    return `The keys of ${this.issuer} cannot be fetched: ${message || code}`;
  };
}

/** OpenID Connect Discovery, section 4. Follows no redirect, which could lead to a server that is not trusted. */
async function discoverKeysUrl(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const signal = AbortSignal.timeout(DISCOVERY_TIMEOUT_MS);
  const response = await fetch(url, { redirect: 'manual', signal });
  if (!response.ok) throw new Error(`the response has the status ${response.status}`);
  const document = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown };
  const { issuer: found, jwks_uri: keysUrl } = document;
  if (found !== issuer) throw new Error(`the discovery document names ${JSON.stringify(found)}`);
  if (typeof keysUrl === 'string' && isTrustworthyUrl(keysUrl)) return keysUrl;
  throw new Error('the discovery document has no jwks_uri with an https: URL');
}
