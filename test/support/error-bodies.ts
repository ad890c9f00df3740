import { errorCatalogue, type ErrorBody, type ErrorKind } from '../../src/plants';

/** The numbers and messages of the errors that say more than the catalogue. */
const texts = {
  malformedTarget: '40000 The request target is malformed.',
  missingHost: '40000 The request must have exactly one Host header.',
  unknownVersion: '40000 The HTTP version must be 1.0 or 1.1.',
  unknownCoding: '40000 The only Transfer-Encoding is chunked, in HTTP/1.1.',
  empty: '40001 The body is empty.',
  notUtf8: '40001 The body is not UTF-8.',
  notAnObject: '40002 Not a NewPlant: it must be a JSON object.',
  idMissing: '40002 Not a NewPlant: id is required.',
  idNotInt64:
    '40002 Not a NewPlant: id must be an integer from -9223372036854775808 to 9223372036854775807.',
  idNotNumber:
    '40002 Not a NewPlant: id must be a JSON number, an integer from -9223372036854775808 to 9223372036854775807.',
  idRounded:
    '40002 Not a NewPlant: id must be from -(2^53 - 1) to 2^53 - 1, because this server rounds larger numbers. To accept every id, create the application with rawBody: true.',
  nameMissing: '40002 Not a NewPlant: name is required.',
  nameNotString: '40002 Not a NewPlant: name must be a string.',
  nameNotExact: '40002 Not a NewPlant: name must not contain U+0000 or an unpaired surrogate.',
  tagNotString: '40002 Not a NewPlant: tag must be a string.',
  tagNotExact: '40002 Not a NewPlant: tag must not contain U+0000 or an unpaired surrogate.',
  mediaType: '40004 The Content-Type must be application/json, in UTF-8.',
  contentEncoding: '40004 The body must not have a Content-Encoding.',
  tooLarge: '40005 The body is larger than the limit of 65536 bytes.',
  keyMalformed:
    '40006 The Idempotency-Key must be 1 to 255 visible ASCII characters, bare or as a quoted string.',
  keyReused:
    '40007 A plant with this id was created with the same Idempotency-Key but different content.',
  malformedCredentials:
    '40101 The request must have exactly one Authorization header, of the form "Bearer TOKEN".',
  tokenExpired: '40101 The token has expired.',
  tokenBound:
    '40101 The token is bound to a key (claim cnf). The service does not accept such tokens.',
  notAccessToken: '40101 The token is not an access token.',
};

const meanings = Object.entries(errorCatalogue).map(([kind, { error, meaning }]) => {
  return [kind, { error, message: meaning }] as const;
});
const messages = Object.entries(texts).map(([name, text]) => {
  return [name, { error: Number(text.slice(0, 5)), message: text.slice(6) }] as const;
});

/** The Error bodies that tests expect. docs/errors.md is compared with those of the catalogue. */
export const errorBodies = Object.fromEntries([...meanings, ...messages]) as Record<
  ErrorKind | keyof typeof texts,
  ErrorBody
>;

/** The number of each error, for tests that do not check the message. */
export const errorNumbers = Object.fromEntries(
  Object.entries(errorBodies).map(([name, { error }]) => [name, error]),
) as Record<keyof typeof errorBodies, number>;
