import { isTrustworthyUrl } from './issuer-url';

/** Which bearer tokens are accepted. Each way is open as well as the others. */
export interface AuthOptions {
  /**
   * Accepted tokens: each the token itself, or `sha256:` and its digest in hexadecimal.
   *
   * @default none
   */
  readonly tokens?: readonly string[] | undefined;
  /**
   * A file of accepted tokens, relative to the working directory, that is followed as it changes.
   *
   * @default none
   */
  readonly tokensFile?: string | undefined;
  /**
   * An OpenID Connect issuer whose JWT access tokens are accepted: its identifier, an `https:` URL
   * (`http:` on the same machine), to the letter as in the `iss` claim.
   *
   * @default none
   */
  readonly issuer?: string | undefined;
  /** What the `aud` claim must name. An issuer needs one. */
  readonly audience?: string | undefined;
  /**
   * Where the issuer's keys are.
   *
   * @default as discovered, OpenID Connect Discovery section 4
   */
  readonly jwksUrl?: string | undefined;
  /**
   * The scope that JWTs must have: one or several tokens separated by spaces, all needed.
   *
   * @default none
   */
  readonly scope?: string | undefined;
}

type IssuerOption = 'issuer' | 'audience' | 'jwksUrl' | 'scope';

/** RFC 6749 section 3.3 */
const SCOPE = /^[!#-[\]-~]+(?: [!#-[\]-~]+)*$/;

/**
 * What is wrong with the options of an issuer, a sentence each.
 *
 * @param names what its reader calls the options
 */
export function authFaults(
  { issuer, audience, jwksUrl, scope }: AuthOptions,
  names: Readonly<Record<IssuerOption, string>> = {
    issuer: 'issuer',
    audience: 'audience',
    jwksUrl: 'jwksUrl',
    scope: 'scope',
  },
): string[] {
  const url = 'an https: URL (http: only to a loopback address)';
  const faults: string[] = [];
  if (issuer === undefined) {
    for (const [option, value] of Object.entries({ audience, jwksUrl, scope })) {
      if (value !== undefined) {
        faults.push(`${names[option as IssuerOption]} needs ${names.issuer} beside it`);
      }
    }
  } else {
    if (!isTrustworthyUrl(issuer) || /[?#]/.test(issuer)) {
      faults.push(`${names.issuer} must be ${url} without query and fragment`);
    }
    if (audience === undefined) faults.push(`${names.issuer} needs ${names.audience} beside it`);
  }
  if (jwksUrl !== undefined && !isTrustworthyUrl(jwksUrl)) {
    faults.push(`${names.jwksUrl} must be ${url}`);
  }
  if (scope !== undefined && !SCOPE.test(scope)) {
    faults.push(`${names.scope} must be scope tokens of RFC 6749, separated by single spaces`);
  }
  return faults;
}

/** Whether the options leave no way for any token to be accepted. */
export function acceptsNothing({ tokens = [], tokensFile, issuer }: AuthOptions): boolean {
  return tokens.length === 0 && tokensFile === undefined && issuer === undefined;
}
