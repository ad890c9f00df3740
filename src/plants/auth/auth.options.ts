import { OptionError } from '../errors/operator.error';
import { isLoopback } from '../environment';
import { findBlockedPort } from './blocked-ports';
import { SCOPES } from './scopes';
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

/** Scope tokens and spaces, RFC 6749 section 3.3: no quotation marks and backslashes, because responses quote them. */
const SCOPE_TOKENS = /^[!#-[\]-~ ]*$/;
const URL_RULE = 'must be an https: URL (http: only to a loopback address)';

const URL_RULE_FOR_ISSUERS = `${URL_RULE} without a query or fragment`;

/** The options that say which scope tokens grant a scope. */
const SCOPE_OPTIONS = Object.values(SCOPES).map(({ option }) => option);

/** Returns an error for every invalid option. No message contains a token. */
export function validateAuthOptions(options: ServiceAuthOptions): OptionError[] {
  const { tokens = [], issuer } = options;
  const errors: OptionError[] = [];
  try {
    parseTokenList(tokens);
  } catch (error) {
    const sentence = `auth.tokens is invalid: ${(error as Error).message}.`;
    errors.push(new OptionError('auth.tokens', sentence));
  }
  if (issuer !== undefined) return [...errors, ...validateIssuerOptions(options, [issuer].flat())];

  for (const name of ['audience', 'jwksUrl', ...SCOPE_OPTIONS] as const) {
    if (options[name] !== undefined) errors.push(createError(name, 'requires', 'issuer'));
  }
  return errors;
}

function validateIssuerOptions(
  options: ServiceAuthOptions,
  issuers: readonly string[],
): OptionError[] {
  const { audience, jwksUrl } = options;
  const errors: OptionError[] = [];
  // The claim `iss` must equal the issuer, so white space counts, although URL.parse() drops it at the ends.
  const areValid = issuers.every((each) => isTrustworthyUrl(each) && !/[?#\s]/.test(each));
  if (!areValid || issuers.length === 0) {
    errors.push(createError('issuer', URL_RULE_FOR_ISSUERS));
  }
  errors.push(...findBlockedPorts('issuer', issuers));

  if (audience === undefined) {
    errors.push(createError('issuer', 'requires', 'audience'));
  } else if (!isAudienceValid([audience].flat())) {
    errors.push(createError('audience', 'must not be empty or have white space at its ends'));
  }

  if (jwksUrl !== undefined) {
    if (!isTrustworthyUrl(jwksUrl)) errors.push(createError('jwksUrl', URL_RULE));
    if (issuers.length > 1) errors.push(createError('jwksUrl', 'requires a single', 'issuer'));
    errors.push(...findBlockedPorts('jwksUrl', [jwksUrl]));
  }

  for (const name of SCOPE_OPTIONS) {
    const scopes = options[name];
    if (scopes === undefined) continue;
    if (SCOPE_TOKENS.test(scopes) && splitScopes(scopes).length > 0) continue;
    errors.push(
      createError(
        name,
        'must be scopes separated by spaces, without quotation marks and backslashes',
      ),
    );
  }
  return errors;
}

function isAudienceValid(audiences: readonly string[]): boolean {
  return audiences.length > 0 && audiences.every((each) => each !== '' && each === each.trim());
}

function findBlockedPorts(name: keyof ServiceAuthOptions, urls: readonly string[]): OptionError[] {
  const ports = urls.map(findBlockedPort).filter((port) => port !== undefined);
  return ports.map((port) =>
    createError(name, `must not have the port ${port}, to which Node.js never connects`),
  );
}

/** @param required another option, with which the sentence ends */
function createError(
  name: keyof ServiceAuthOptions,
  rule: string,
  required?: keyof ServiceAuthOptions,
): OptionError {
  const option = `auth.${name}`;
  if (required === undefined) return new OptionError(option, `${option} ${rule}.`);
  const sentence = `${option} ${rule} auth.${required}.`;
  return new OptionError(option, sentence, undefined, `auth.${required}`);
}

/** Splits scope tokens. Spaces at the ends and repeated spaces do not count. */
export function splitScopes(scopes: string): string[] {
  return scopes.split(' ').filter((scope) => scope !== '');
}

/** Whether a response from a URL cannot be changed in transit. Rejects a user or password, because URLs are logged. */
export function isTrustworthyUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url?.username !== '' || url.password !== '') return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url.hostname));
}

/** Whether there is a source of tokens. Without one, no request could be accepted. */
export function isAuthConfigured({ tokens = [], tokensFile, issuer }: AuthOptions): boolean {
  return tokens.length > 0 || tokensFile !== undefined || issuer !== undefined;
}
