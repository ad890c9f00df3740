import { hash } from 'node:crypto';
import { createParamDecorator } from '@nestjs/common';
import { type Caller, identityOf } from './auth/caller';
import { InvalidIdempotencyKeyError } from './errors/errors';
import { fieldValues, type HostRequest, nodeRequest } from './http/request';

/** The request header, draft-ietf-httpapi-idempotency-key-header-07, which expired in April 2026. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** The response header of a repeated creation that was answered like the first. Its value is "true". */
export const IDEMPOTENT_REPLAYED = 'Idempotent-Replayed';

/**
 * A field value: 1 to 255 visible ASCII characters as the content of an RFC 9651 String, section 3.3.3,
 * or as they are. There a comma would separate the values of a list, RFC 9110 section 5.3.
 * The document has it too, so it is written as all dialects of regular expressions read it.
 */
export const KEY_FIELD = new RegExp(
  String.raw`^(?:[!#-+\--~]{1,255}|"(?:[!#-\[\]-~]|\\["\\]){1,255}")$`,
);

const SYNTAX =
  'The Idempotency-Key must be 1 to 255 visible ASCII characters, as they are or as a quoted string.';

/**
 * Reads the field `Idempotency-Key`: `"abc"`, a String of RFC 9651, is the same key as `abc`.
 *
 * @returns undefined when the request has none
 * @throws InvalidIdempotencyKeyError when the field is malformed, empty or repeated
 */
export const IdempotencyKey = createParamDecorator((_: unknown, context) => {
  const request = nodeRequest(context.switchToHttp().getRequest<HostRequest>());
  if (request.headers['idempotency-key'] === undefined) return undefined;
  const [field = '', ...others] = fieldValues(request, 'idempotency-key');
  if (others.length > 0) {
    throw new InvalidIdempotencyKeyError(
      'The request must not have more than one Idempotency-Key header.',
    );
  }
  if (!KEY_FIELD.test(field)) throw new InvalidIdempotencyKeyError(SYNTAX);
  return field.startsWith('"') ? field.slice(1, -1).replaceAll(/\\(.)/g, '$1') : field;
});

/**
 * The SHA-256 of a key and its caller, in hexadecimal digits: what a store keeps of both.
 *
 * @throws InvalidIdempotencyKeyError when a caller in process gives no such key
 */
export function digestIdempotencyKey(key: string, caller: Caller | undefined): string {
  if (!/^[!-~]{1,255}$/.test(key)) throw new InvalidIdempotencyKeyError(SYNTAX);
  // A JSON array, so that no two callers and keys come out the same.
  return hash('sha256', JSON.stringify([...(caller ? identityOf(caller) : []), key]));
}
