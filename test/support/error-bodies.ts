import type { ErrorBody } from '../../src/plants';

/** The Error bodies that tests expect, whole. */
export const errorBodies = {
  malformedRequest: body(
    40000,
    'The HTTP request is malformed: its request line, headers or framing.',
  ),
  malformedTarget: body(40000, 'The request target is malformed.'),
  missingHost: body(40000, 'The request must have exactly one Host header.'),
  malformedHost: body(40000, 'The Host header must be a host, or a host and a port.'),
  lastCoding: body(40000, 'The last transfer coding must be chunked.'),
  codingOfOldVersion: body(40000, 'An HTTP/1.0 request must not have a Transfer-Encoding header.'),
  missingVersion: body(40000, 'The request line must name HTTP/1.1 or HTTP/1.0.'),
  empty: body(40001, 'The body is empty.'),
  notUtf8: body(40001, 'The body is not UTF-8.'),
  notAnObject: body(40002, 'Not a NewPlant: it must be a JSON object.'),
  idMissing: body(40002, 'Not a NewPlant: id is required.'),
  idNotInt64: body(
    40002,
    'Not a NewPlant: id must be an integer from -9223372036854775808 to 9223372036854775807.',
  ),
  idNotNumber: body(
    40002,
    'Not a NewPlant: id must be a JSON number, an integer from -9223372036854775808 to 9223372036854775807.',
  ),
  idRounded: body(
    40002,
    'Not a NewPlant: id must be from -(2^53 - 1) to 2^53 - 1, because this server rounds larger numbers.',
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
  tooLarge: body(40005, 'The body is larger than the limit of 1048576 bytes.'),
  keyMalformed: body(
    40006,
    'The Idempotency-Key must be 1 to 255 visible ASCII characters, as they are or as a quoted string.',
  ),
  keyTwice: body(40006, 'The request must not have more than one Idempotency-Key header.'),
  keyReused: body(
    40007,
    'A plant with this id was created with the same Idempotency-Key but different content.',
  ),
  missingCredentials: body(
    40100,
    'No bearer token: the Authorization header is missing or has another scheme.',
  ),
  malformedCredentials: body(
    40101,
    'The request must have exactly one Authorization header, of the form "Bearer TOKEN".',
  ),
  invalidToken: body(
    40101,
    'Invalid bearer token: malformed, unknown or expired, or more than one Authorization header.',
  ),
  tokenTwice: body(40101, 'The token must be in the Authorization header only, not in the query.'),
  tokenExpired: body(40101, 'The token has expired.'),
  tokenBound: body(
    40101,
    'The token is bound to a key (claim cnf). The service does not accept such tokens.',
  ),
  notAccessToken: body(40101, 'The token is not an access token.'),
  forbidden: body(
    40300,
    'The caller is not allowed to do this; for example, the token lacks a scope.',
  ),
  notFound: body(40400, 'There is nothing at this path.'),
  methodNotAllowed: body(
    40500,
    'The path does not support this method; the Allow header lists those it supports.',
  ),
  requestTimeout: body(40800, 'The request was not received completely in time.'),
  expectationFailed: body(41700, 'The Expect header must be 100-continue.'),
  tooManyRequests: body(42900, 'Too many requests; the Retry-After header says how long to wait.'),
  headersTooLarge: body(43100, 'The request line and headers are too large.'),
  internal: body(50000, "Unexpected error; the server's log has the cause."),
  unknownMethod: body(50100, 'The server does not support this method or transfer coding.'),
  unknownCoding: body(50100, 'The only transfer coding supported is chunked.'),
  unavailable: body(
    50300,
    "This request stored nothing: the service is overloaded or shutting down, or the store or the issuer's keys are unavailable. Send it again after Retry-After.",
  ),
  outcomeUnknown: body(
    50400,
    'The database did not confirm the commit: the plant may or may not be stored. Send the request again with the same Idempotency-Key.',
  ),
};

function body(error: number, message: string): ErrorBody {
  return { error, message };
}
