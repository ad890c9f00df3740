import { InvalidTokenError, MissingCredentialsError } from '../errors';

/** RFC 9110 section 11.4: the scheme, and after white space the rest. */
const CREDENTIALS = /^([^ \t]*)[ \t]*(.*)$/s;
/** RFC 6750 section 2.1: exactly one token, after one or more spaces. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i;

/**
 * The bearer token of a request.
 *
 * @param fields every `Authorization` field of the request
 * @throws MissingCredentialsError when there is none, or only of other schemes
 * @throws InvalidTokenError when there is more than one, or it is malformed
 */
export function bearerToken(fields: readonly string[]): string {
  if (!fields.some(isBearer)) throw new MissingCredentialsError();
  const token = fields.length === 1 ? BEARER.exec(fields[0] ?? '')?.[1] : undefined;
  if (token === undefined) {
    throw new InvalidTokenError('The Authorization header must be "Bearer <ACCESS_TOKEN>", once.');
  }
  return token;
}

function isBearer(field: string): boolean {
  return CREDENTIALS.exec(field)?.[1]?.toLowerCase() === 'bearer';
}
