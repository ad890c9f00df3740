import { OptionError } from '../errors/operator.error';
import { isLoopback } from '../environment';
import { parseTokenList } from './token-list';

/** Which bearer tokens are accepted. The sources can be combined. */
export interface AuthOptions {
  /**
   * Accepted tokens: each is the token itself, or `sha256:` and its digest in hexadecimal, then
   * optionally ` scope=create` or ` scope=metrics`, which limits it to that.
   */
  readonly tokens?: readonly string[] | undefined;
  /** Path of a file of accepted tokens. It is reloaded when it changes. */
  readonly tokensFile?: string | undefined;
  /**
   * The OpenID Connect issuers whose JWT access tokens are accepted: the values of their `iss` claim, `https:` URLs
   * (or `http:` to a loopback address).
   */
  readonly issuer?: string | readonly string[] | undefined;
  /** The accepted audiences: the `aud` claim must contain at least one of them. Required with an issuer. */
  readonly audience?: string | readonly string[] | undefined;
  /**
   * URL of the issuer's keys, if there is a single issuer.
   * @default found by OpenID Connect Discovery, section 4
   */
  readonly jwksUrl?: string | undefined;
  /**
   * The scope tokens (RFC 6749 section 3.3) that JWTs must have to create plants, separated by spaces. They are read
   * from the claims `scope`, `scp`, `roles` and `permissions`.
   */
  readonly scope?: string | undefined;
}

/** The options of the standalone service, which also exposes metrics. */
export interface ServiceAuthOptions extends AuthOptions {
  /**
   * The scope tokens that JWTs must have to read the metrics, separated by spaces.
   * @default the value of `scope`
   */
  readonly metricsScope?: string | undefined;
}

const URL_RULE = 'must be an https: URL (http: only to a loopback address)';

/** Returns an error for every invalid option. No message contains a token. */
export function validateAuthOptions(options: ServiceAuthOptions): OptionError[] {
  const { tokens = [], issuer, audience, jwksUrl } = options;
  const errors: OptionError[] = [];
  const reject = (name: keyof ServiceAuthOptions, rule: string, required?: string): void => {
    errors.push(new OptionError(`auth.${name}`, `auth.${name} ${rule}.`, undefined, required));
  };
  try {
    parseTokenList(tokens);
  } catch (error) {
    reject('tokens', `is invalid: ${(error as Error).message}`);
  }
  if (issuer === undefined) {
    for (const name of ['audience', 'jwksUrl', 'scope', 'metricsScope'] as const) {
      if (options[name] !== undefined) reject(name, 'requires auth.issuer', 'auth.issuer');
    }
    return errors;
  }
  const issuers = [issuer].flat();
  if (!issuers.every((each) => isTrustworthyUrl(each) && !/[?#]/.test(each))) {
    reject('issuer', `${URL_RULE} without a query or fragment`);
  }
  if (audience === undefined) reject('issuer', 'requires auth.audience', 'auth.audience');
  if (jwksUrl !== undefined && !isTrustworthyUrl(jwksUrl)) reject('jwksUrl', URL_RULE);
  if (jwksUrl !== undefined && issuers.length > 1) {
    reject('jwksUrl', 'requires a single auth.issuer', 'auth.issuer');
  }
  for (const name of ['scope', 'metricsScope'] as const) {
    // RFC 6749 section 3.3. Responses quote them.
    if (/^[!#-[\]-~ ]*$/.test(options[name] ?? '')) continue;
    reject(name, 'must be scopes separated by spaces, without quotation marks and backslashes');
  }
  return errors;
}

/** Whether a response from a URL cannot be changed in transit. Rejects a user or password, because URLs are logged. */
export function isTrustworthyUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url?.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

export function isAuthConfigured({ tokens = [], tokensFile, issuer }: AuthOptions): boolean {
  return tokens.length > 0 || tokensFile !== undefined || issuer !== undefined;
}
