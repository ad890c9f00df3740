import { Logger } from '@nestjs/common';
import type { JWTVerifyGetKey, RemoteJWKSet } from 'jose';
import { UnavailableError } from '../errors/errors';
import { discoverKeysUrl, findRootMessage } from './discovery';
import { loadJose } from './load-jose';

const REFRESH_INTERVAL_MS = 4 * 60_000;
/** After a fetch, when an unknown key may cause another one, and how long keys are used while the issuer is down. */
const KEY_SET_OPTIONS = { cooldownDuration: 10_000, cacheMaxAge: 60 * 60_000 };

/** The public keys of an OpenID Connect issuer. jose fetches and caches them; this adds discovery, refresh and log. */
export class IssuerKeys {
  private keySet?: RemoteJWKSet;
  private fetching?: Promise<RemoteJWKSet> | undefined;
  /** Why the last refresh failed. Empty if it succeeded, undefined before it. */
  private problem?: string;
  private timer?: NodeJS.Timeout;

  constructor(
    private readonly issuer: string,
    private readonly jwksUrl: string | undefined,
  ) {}

  /** Fetches the keys now, and then repeatedly until {@link stop} is called. Logs the result if it is a new one. */
  async start(): Promise<void> {
    this.timer = setTimeout(() => void this.start(), REFRESH_INTERVAL_MS).unref();
    const problem = await this.check();
    if (problem === this.problem) return;
    this.problem = problem;
    const logger = new Logger('IssuerKeys');
    if (problem === '') logger.log(`Fetched the keys of ${this.issuer}.`);
    else logger.warn(`${problem}. Requests whose JWT was signed with an unknown key get 503.`);
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  /** Fetches the keys from the URL that the issuer states now. Returns why that failed; empty if it succeeded. */
  check(): Promise<string> {
    return this.refresh().then(() => '', this.explain);
  }

  /** Finds the key of a token for jose. @throws UnavailableError when the keys cannot be fetched */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    try {
      return await (this.keySet ?? (await this.refresh()))(header, token);
    } catch (error) {
      // jose cannot fetch the keys, unless it says that none or several of them match.
      if (/_MATCHING_KEYS?$/.test((error as NodeJS.ErrnoException).code ?? '')) throw error;
      throw new UnavailableError({ cause: new Error(this.explain(error)) });
    }
  };

  private refresh(): Promise<RemoteJWKSet> {
    const fetchKeys = async (): Promise<RemoteJWKSet> => {
      const { createRemoteJWKSet } = await loadJose();
      const url = new URL(this.jwksUrl ?? (await discoverKeysUrl(this.issuer)));
      const keySet = createRemoteJWKSet(url, KEY_SET_OPTIONS);
      await keySet.reload();
      return (this.keySet = keySet);
    };
    this.fetching ??= fetchKeys().finally(() => (this.fetching = undefined));
    return this.fetching;
  }

  private readonly explain = (error: unknown): string =>
    `The keys of ${this.issuer} cannot be fetched: ${findRootMessage(error)}`;
}
