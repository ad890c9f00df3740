import { isLoopback } from '../http/loopback';
import type { OptionFault } from '../errors/operator.error';
import { makeToken, parseTokenList } from './listed-token';

/** Which bearer tokens are accepted. The sources can be combined. */
export interface AuthOptions {
  /**
   * Accepted tokens: each is the token itself, or `sha256:` and its digest in hexadecimal, then
   * optionally ` scope=create` or ` scope=metrics`, which limits it to that.
   */
  readonly tokens?: readonly string[] | undefined;
  /** Path of a file of accepted tokens, whose changes are followed. */
  readonly tokensFile?: string | undefined;
  /**
   * An OpenID Connect issuer whose JWT access tokens are accepted: the value of their `iss` claim, an
   * `https:` URL (or `http:` to a loopback address).
   */
  readonly issuer?: string | undefined;
  /** The value that the `aud` claim must contain, or several, of which any suffices. Required with an issuer. */
  readonly audience?: string | readonly string[] | undefined;
  /** URL of the issuer's keys; found by OpenID Connect Discovery, section 4, unless set. */
  readonly jwksUrl?: string | undefined;
  /** The scope tokens that JWTs must have to create plants, separated by single spaces. */
  readonly scope?: string | undefined;
}

/** The options of the standalone service, which has metrics to read. */
export interface ServiceAuthOptions extends AuthOptions {
  /** The scope that JWTs must have to read the metrics; by default that of `scope`. */
  readonly metricsScope?: string | undefined;
}

/** RFC 6749 section 3.3 */
const SCOPE = /^[!#-[\]-~]+(?: [!#-[\]-~]+)*$/;

/** A clause about a URL that is not trustworthy. */
const NO_URL = 'must be an https: URL (http: only to a loopback address)';

/** Finds each fault. No clause shows a token. */
export function validateAuthOptions(options: ServiceAuthOptions): OptionFault[] {
  const { tokens = [], issuer, audience, jwksUrl } = options;
  const faults: OptionFault[] = [];
  const add = (option: keyof ServiceAuthOptions, clause: string, other?: 'issuer' | 'audience') => {
    faults.push({ option: `auth.${option}`, clause, ...(other && { other: `auth.${other}` }) });
  };
  try {
    parseTokenList(tokens);
  } catch (error) {
    add('tokens', `is invalid: ${(error as Error).message}`);
  }
  if (issuer === undefined) {
    for (const option of ['audience', 'jwksUrl', 'scope', 'metricsScope'] as const) {
      if (options[option] !== undefined) add(option, 'requires', 'issuer');
    }
  } else {
    if (!isTrustworthyUrl(issuer) || /[?#]/.test(issuer)) {
      add('issuer', `${NO_URL} without query and fragment`);
    }
    const audiences: readonly unknown[] = [audience ?? []].flat();
    if (audiences.length === 0) {
      add('issuer', 'requires', 'audience');
    } else if (audiences.some((each) => typeof each !== 'string' || each === '')) {
      add('audience', 'must be a text or a list of texts');
    }
  }
  if (jwksUrl !== undefined && !isTrustworthyUrl(jwksUrl)) add('jwksUrl', NO_URL);
  for (const option of ['scope', 'metricsScope'] as const) {
    if (SCOPE.test(options[option] ?? 'x')) continue;
    add(option, 'must be scope tokens of RFC 6749, separated by single spaces');
  }
  return faults;
}

/**
 * Whether nobody can replace in transit what is fetched from a URL: it is `https:`, or `http:` to a
 * loopback address. One with a user or password is refused, because URLs are logged.
 */
export function isTrustworthyUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url?.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

export function isAuthConfigured({ tokens = [], tokensFile, issuer }: AuthOptions): boolean {
  return tokens.length > 0 || tokensFile !== undefined || issuer !== undefined;
}

/**
 * Lets a service be tried out: its options, with a random token when they accept none.
 *
 * @returns that token too, which is valid until the service stops
 */
export function withTrialToken<T extends AuthOptions>(auth: T): { auth: T; trialToken?: string } {
  if (isAuthConfigured(auth)) return { auth };
  const trialToken = makeToken();
  return { auth: { ...auth, tokens: [trialToken] }, trialToken };
}
