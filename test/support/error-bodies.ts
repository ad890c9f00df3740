import type { ErrorBody } from '../../src/plants';

/** The Error bodies that tests expect, whole. */
export const errorBodies = {
  malformedRequest: body(40000, 'The HTTP request itself is malformed.'),
  malformedTarget: body(40000, 'The request target is malformed.'),
  missingHost: body(40000, 'The request must have exactly one Host header.'),
  malformedHost: body(40000, 'The Host header must be a host, or a host and a port.'),
  lastCoding: body(40000, 'The last transfer coding must be chunked.'),
  codingOfOldVersion: body(40000, 'HTTP/1.0 has no transfer codings.'),
  missingVersion: body(40000, 'The request line must name HTTP/1.1 or HTTP/1.0.'),
  empty: body(40001, 'The body is empty.'),
  notUtf8: body(40001, 'The body is not UTF-8.'),
  notAnObject: body(40002, 'Not a NewPlant: the body must be a JSON object.'),
  idMissing: body(40002, 'Not a NewPlant: id is required.'),
  idNotInt64: body(
    40002,
    'Not a NewPlant: id must be an integer from -9223372036854775808 to 9223372036854775807.',
  ),
  idRounded: body(
    40002,
    'Not a NewPlant: id may have been rounded before it was validated. This server does not take ids above 2^53.',
  ),
  nameMissing: body(40002, 'Not a NewPlant: name is required.'),
  nameNotString: body(40002, 'Not a NewPlant: name must be a string.'),
  nameNotExact: body(
    40002,
    'Not a NewPlant: name must not contain U+0000 or an unpaired surrogate.',
  ),
  tagNotString: body(40002, 'Not a NewPlant: tag must be a string.'),
  tagNotExact: body(40002, 'Not a NewPlant: tag must not contain U+0000 or an unpaired surrogate.'),
  idTaken: body(40003, 'A plant with this id exists already.'),
  mediaType: body(40004, 'The Content-Type must be application/json, in UTF-8.'),
  contentEncoding: body(40004, 'The body must not have a Content-Encoding.'),
  tooLarge: body(40005, 'The body is larger than the limit.'),
  keyMalformed: body(
    40006,
    'The Idempotency-Key must be 1 to 255 visible ASCII characters, as they are or as a quoted string.',
  ),
  keyTwice: body(40006, 'The Idempotency-Key header must be sent once.'),
  keyReused: body(
    40007,
    'The plant with this id was created with the same Idempotency-Key and other content.',
  ),
  missingCredentials: body(
    40100,
    'No bearer credentials: no Authorization header, or one of another scheme.',
  ),
  malformedCredentials: body(
    40101,
    'The Authorization header must be "Bearer <ACCESS_TOKEN>", once.',
  ),
  invalidToken: body(40101, 'Invalid bearer token: malformed, sent twice, unknown or expired.'),
  tokenTwice: body(40101, 'The token must be in the Authorization header alone.'),
  tokenExpired: body(40101, 'The token has expired.'),
  tokenBound: body(40101, 'The token is bound to a key, whose possession is not checked here.'),
  notAccessToken: body(40101, 'The token is not an access token.'),
  forbidden: body(
    40300,
    'The caller is known but may not do this; a token lacks a scope, for example.',
  ),
  notFound: body(40400, 'There is nothing at this path.'),
  methodNotAllowed: body(
    40500,
    'The path does not answer this method; the Allow header names those it does.',
  ),
  requestTimeout: body(40800, 'The request was not received completely in time.'),
  expectationFailed: body(41700, 'The Expect header asks for something other than 100-continue.'),
  tooManyRequests: body(42900, 'Too many requests; the Retry-After header says how long to wait.'),
  headersTooLarge: body(43100, 'The head of the request, its target included, is too large.'),
  internal: body(50000, 'Something unexpected failed; the log has the cause.'),
  unknownMethod: body(50100, 'A method or a transfer coding that the server does not know.'),
  unknownCoding: body(50100, 'The only transfer coding supported is chunked.'),
  unavailable: body(
    50300,
    'Refused before anything was stored: overloaded, closing, no storage, or no keys of the issuer. Try again.',
  ),
  outcomeUnknown: body(
    50400,
    'Handed to the database, which did not answer: the plant may or may not be stored.',
  ),
};

function body(error: number, message: string): ErrorBody {
  return { error, message };
}
