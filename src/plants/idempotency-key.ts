import { hash } from 'node:crypto';
import { createParamDecorator } from '@nestjs/common';
import { type Caller, identityOf } from './auth/caller';
import { InvalidIdempotencyKeyError } from './errors/errors';
import { fieldValues, type HostRequest, nodeRequest } from './http/request';

/** The request header, draft-ietf-httpapi-idempotency-key-header-07, which expired in April 2026. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** The response header of a repeated creation that was answered like the first. Its value is "true". */
export const IDEMPOTENT_REPLAYED = 'Idempotent-Replayed';

/** @throws InvalidIdempotencyKeyError unless the key is 1 to 255 visible ASCII characters, RFC 5234 VCHAR */
export function assertIdempotencyKey(key: string): void {
  if (/^[!-~]{1,255}$/.test(key)) return;
  throw new InvalidIdempotencyKeyError(
    'The Idempotency-Key must be 1 to 255 visible ASCII characters, as they are or as a quoted string.',
  );
}

/**
 * A field value: the content of an RFC 9651 String, section 3.3.3, or a key without quotation marks. A
 * comma would separate the values of a list, RFC 9110 section 5.3.
 */
const KEY_FIELD = /^(?:"((?:[^"\\]|\\["\\])*)"|([^",]*))$/;

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
  const [, quoted, bare = ''] = KEY_FIELD.exec(field) ?? [];
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare;
  assertIdempotencyKey(key);
  return key;
});

/** The SHA-256 of a key and its caller, in hexadecimal digits: what a store keeps of both. */
export function digestIdempotencyKey(key: string, caller: Caller | undefined): string {
  assertIdempotencyKey(key);
  // A JSON array, so that no two callers and keys come out the same.
  return hash('sha256', JSON.stringify([...(caller ? identityOf(caller) : []), key]));
}
