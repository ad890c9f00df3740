import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { InvalidTokenError, MissingCredentialsError } from '../errors';
import { fieldValues } from '../http';
import { hashToken } from './token-digest';
import { isSameText } from './same-text';

/** RFC 9110 section 11.4: the scheme, white space and the rest. */
const CREDENTIALS = /^([^ \t]*)[ \t]*(.*)$/s;
/** RFC 6750 section 2.1: exactly one token, after one or more spaces. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/**
 * The field of the latest request of each connection, and the token in it. A client sends the same one
 * again and again, which then need not be parsed and hashed. Whether it is valid is judged each time.
 */
const latest = new WeakMap<Socket, { readonly field: string; readonly token: BearerToken }>();

/** The bearer token of a request. It stays hidden when this object is logged or serialised. */
export class BearerToken {
  readonly #text: string;
  #digest: string | undefined;

  /** @param text a token of the syntax of RFC 6750 section 2.1 */
  constructor(text: string) {
    this.#text = text;
  }

  /**
   * Reads the token of a request.
   *
   * @throws MissingCredentialsError when there is no `Authorization` field of the Bearer scheme
   * @throws InvalidTokenError when the field is malformed or repeated, or the query has a token too:
   *   RFC 6750 section 2 allows one method per request
   */
  static fromRequest(request: IncomingMessage): BearerToken {
    const fields = fieldValues(request, 'authorization');
    const [field = ''] = fields;
    const known = latest.get(request.socket);
    // In constant time: behind a proxy, the field before may be another client's.
    const isKnown = known !== undefined && fields.length === 1 && isSameText(field, known.field);
    const token = isKnown ? known.token : BearerToken.fromFields(fields);
    if (hasTokenInQuery(request.url ?? '')) {
      throw new InvalidTokenError(
        'The token must be in the Authorization header only, not in the query.',
      );
    }
    if (!isKnown) latest.set(request.socket, { field, token });
    return token;
  }

  private static fromFields(fields: readonly string[]): BearerToken {
    const text = fields.length === 1 ? BEARER.exec(fields[0] ?? '')?.[1] : undefined;
    if (text !== undefined) return new BearerToken(text);
    if (!fields.some(hasBearerScheme)) throw new MissingCredentialsError();
    throw new InvalidTokenError(
      'The request must have exactly one Authorization header, of the form "Bearer TOKEN".',
    );
  }

  /** The token itself. */
  get text(): string {
    return this.#text;
  }

  /** The digest that {@link hashToken} makes of it. */
  get digest(): string {
    return (this.#digest ??= hashToken(this.#text));
  }
}

function hasBearerScheme(field: string): boolean {
  return CREDENTIALS.exec(field)?.[1]?.toLowerCase() === 'bearer';
}

function hasTokenInQuery(target: string): boolean {
  const query = target.indexOf('?');
  return query >= 0 && new URLSearchParams(target.slice(query)).has('access_token');
}
