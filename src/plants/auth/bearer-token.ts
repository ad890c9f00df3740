import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { InvalidTokenError, PlantStoreError } from '../errors/errors';
import { headerValues } from '../http/request';

/** RFC 6750 section 2.1: exactly one token, after one or more spaces. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/** The bearer token of a request. It stays hidden when this object is logged or serialised. */
export class BearerToken {
  readonly #text: string;
  #digest: string | undefined;

  /** @param text a token in the syntax of RFC 6750 section 2.1 */
  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Reads the bearer token of a request.
   *
   * @throws PlantStoreError when there is no `Authorization: Bearer` header
   * @throws InvalidTokenError when the header is malformed or repeated, or the query contains a token too:
   *   RFC 6750 section 2 allows one method per request
   */
  static fromRequest(request: IncomingMessage): BearerToken {
    const values = headerValues(request, 'authorization');
    const text = values.length === 1 ? BEARER.exec(values[0] ?? '')?.[1] : undefined;
    if (text === undefined) {
      if (!values.some(hasBearerScheme)) {
        throw new PlantStoreError('missingCredentials');
      }
      throw new InvalidTokenError(
        'The request must have exactly one Authorization header, of the form "Bearer TOKEN".',
      );
    }
    const { url = '' } = request;
    if (url.includes('?') && new URLSearchParams(url.slice(url.indexOf('?'))).has('access_token')) {
      throw new InvalidTokenError(
        'The token must be in the Authorization header only, not in the query.',
      );
    }
    return new BearerToken(text);
  }

  get text(): string {
    return this.#text;
  }

  get digest(): string {
    return (this.#digest ??= hashToken(this.#text));
  }
}

/** Whether the value of an `Authorization` header has the scheme Bearer, RFC 9110 section 11.4. */
export function hasBearerScheme(value: string): boolean {
  return /^bearer(?:[ \t]|$)/i.test(value);
}

/** Hashes a token with SHA-256, in hexadecimal. Tokens are compared by this digest. */
export function hashToken(token: string): string {
  return hash('sha256', token);
}
