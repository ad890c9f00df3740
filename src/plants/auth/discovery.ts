import { isTrustworthyUrl } from './auth.options';

const TIMEOUT_MS = 5000;

/**
 * Asks an issuer for the URL of its keys: OpenID Connect Discovery, section 4. Does not follow a redirect, which could
 * lead to a server that the operator does not trust.
 *
 * @throws Error saying what is wrong, without a full stop
 */
export async function discoverKeysUrl(issuer: string): Promise<string> {
  const document = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(document, { redirect: 'manual', signal });
  if (!response.ok) throw new Error(`the response has the status ${response.status}`);
  const found = (await response.json()) as Record<string, unknown> | null;
  if (found?.issuer !== issuer) {
    const named = JSON.stringify(found?.issuer);
    throw new Error(
      `the discovery document names the issuer ${named}, not ${JSON.stringify(issuer)}`,
    );
  }
  const url = found.jwks_uri;
  if (typeof url === 'string' && isTrustworthyUrl(url)) return url;
  throw new Error('the discovery document has no jwks_uri with an https: URL');
}

/** Returns the message of the innermost cause, where fetch() hides the reason for a failure. */
export function findRootMessage(error: unknown): string {
  const { cause, message, code, name } = error as NodeJS.ErrnoException;
  if (cause) return findRootMessage(cause);
  return message === '' ? (code ?? name) : message;
}
