import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { createLocalJWKSet, type JSONWebKeySet } from 'jose';
import { UnavailableError } from '../errors';
import { fetchJson } from './fetch-json';
import { isTrustworthyUrl } from './issuer-url';

/** How often the keys are fetched anew, in milliseconds: how long a withdrawn key counts. */
const REFRESH_INTERVAL = 5 * 60_000;
/** The least time between two fetches, whatever asks for them, in milliseconds. */
const COOL_DOWN = 10_000;
/** How long keys are used while the issuer gives no newer ones, in milliseconds. */
const LONGEST_USE = 60 * 60_000;

/** Finds the key for a JWT among those that an issuer published at one time. */
export type KeySet = ReturnType<typeof createLocalJWKSet>;

/**
 * The public keys of an OpenID Connect issuer: fetched at the start, every five minutes, and when a
 * key is asked for that is not among them, but never sooner than ten seconds after the last fetch.
 */
export class IssuerKeys implements OnModuleInit, OnApplicationShutdown {
  private readonly logger = new Logger('IssuerKeys');
  private readonly closing = new AbortController();
  private keys?: { readonly set: KeySet; readonly json: string };
  /** By the clock that never jumps. */
  private fetchedAt = -Infinity;
  private triedAt = -Infinity;
  private fetching?: Promise<void> | undefined;
  private fault?: string | undefined;
  private timer?: NodeJS.Timeout;

  /**
   * @param issuer the issuer identifier, OpenID Connect Discovery section 4
   * @param url where its keys are; undefined to be told by discovery
   */
  constructor(
    private readonly issuer: string,
    private readonly url: string | undefined,
  ) {}

  onModuleInit(): void {
    void this.refresh();
  }

  onApplicationShutdown(): void {
    this.closing.abort();
    clearTimeout(this.timer);
  }

  /**
   * The keys fetched last, unless that is more than an hour ago. It is the same object as long as
   * the issuer publishes the same keys.
   */
  get current(): KeySet | undefined {
    return performance.now() - this.fetchedAt <= LONGEST_USE ? this.keys?.set : undefined;
  }

  /**
   * The keys that the issuer has now: fetched, unless that has just been tried.
   *
   * @throws UnavailableError when the issuer does not tell
   */
  async latest(): Promise<KeySet> {
    await this.refresh();
    if (this.keys === undefined || this.fault !== undefined) {
      throw new UnavailableError({ cause: new Error(`No keys of ${this.issuer}: ${this.fault}`) });
    }
    return this.keys.set;
  }

  private async refresh(): Promise<void> {
    if (this.fetching === undefined && performance.now() - this.triedAt >= COOL_DOWN) {
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
      const jwks = await fetchJson(this.url ?? (await this.discover()), this.closing.signal);
      const json = JSON.stringify(jwks);
      if (json !== this.keys?.json) {
        this.keys = { json, set: createLocalJWKSet(jwks as JSONWebKeySet) };
        this.logger.log(`Fetched new keys of ${this.issuer}.`);
      } else if (this.fault !== undefined) {
        this.logger.log(`${this.issuer} answers again.`);
      }
      this.fetchedAt = this.triedAt;
      this.fault = undefined;
    } catch (error) {
      this.report(reason(error));
    }
    if (this.closing.signal.aborted) return;
    const pause = this.fault === undefined ? REFRESH_INTERVAL : COOL_DOWN;
    this.timer = setTimeout(() => {
      // Timers may be a moment early, by the clock that the cool-down goes by.
      this.triedAt = -Infinity;
      void this.refresh();
    }, pause).unref();
  }

  /** OpenID Connect Discovery section 4. */
  private async discover(): Promise<string> {
    const { issuer, jwks_uri: url } = (await fetchJson(
      `${this.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`,
      this.closing.signal,
    )) as Record<string, unknown>;
    if (issuer !== this.issuer) throw new Error('discovery tells of another issuer');
    if (typeof url !== 'string' || !isTrustworthyUrl(url)) {
      throw new Error('discovery names no https: URL of keys');
    }
    return url;
  }

  /** Says each fault once, however often it is met. */
  private report(fault: string): void {
    if (fault !== this.fault && !this.closing.signal.aborted) {
      this.logger.warn(
        `The keys of ${this.issuer} cannot be fetched: ${fault}. JWTs signed with a key not yet known are answered 503; trying again every ${COOL_DOWN / 1000} s.`,
      );
    }
    this.fault = fault;
  }
}

/** What fetch() says of a failure is in the innermost cause. */
function reason(error: unknown): string {
  const { cause, message, code, name } = error as NodeJS.ErrnoException;
  if (cause) return reason(cause);
  return message === '' ? (code ?? name) : message;
}
