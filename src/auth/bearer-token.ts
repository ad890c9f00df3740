import type { IncomingMessage } from 'node:http';
import { InvalidTokenError, MissingCredentialsError } from '../errors';
import { fieldValues } from '../http';
import { tokenDigest } from './token-digest';

/** RFC 9110 section 11.4: the scheme, and after white space the rest. */
const CREDENTIALS = /^([^ \t]*)[ \t]*(.*)$/s;
/** RFC 6750 section 2.1: exactly one token, after one or more spaces. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/** A bearer token as presented. It shows nothing of itself when it is logged or serialised. */
export class BearerToken {
  readonly #text: string;
  #digest: string | undefined;

  /** @param text well-formed by RFC 6750 section 2.1 */
  constructor(text: string) {
    this.#text = text;
  }

  /**
   * The token of a request.
   *
   * @throws MissingCredentialsError when there is no `Authorization` field, or only other schemes
   * @throws InvalidTokenError when there is more than one, it is malformed, or the query has a
   *   token too: RFC 6750 section 2 allows one method a request
   */
  static of(request: IncomingMessage): BearerToken {
    const fields = fieldValues(request, 'authorization');
    const text = fields.length === 1 ? BEARER.exec(fields[0] ?? '')?.[1] : undefined;
    if (text === undefined) {
      if (!fields.some(isBearer)) throw new MissingCredentialsError();
      throw new InvalidTokenError(
        'The Authorization header must be "Bearer <ACCESS_TOKEN>", once.',
      );
    }
    if (queryHasToken(request.url ?? '')) {
      throw new InvalidTokenError('The token must be in the Authorization header alone.');
    }
    return new BearerToken(text);
  }

  /** The token itself. */
  get text(): string {
    return this.#text;
  }

  /** Its {@link tokenDigest}. */
  get digest(): string {
    return (this.#digest ??= tokenDigest(this.#text));
  }
}

function isBearer(field: string): boolean {
  return CREDENTIALS.exec(field)?.[1]?.toLowerCase() === 'bearer';
}

function queryHasToken(target: string): boolean {
  const query = target.indexOf('?');
  return query >= 0 && new URLSearchParams(target.slice(query)).has('access_token');
}
