import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Caller, identityOf } from './auth/caller';
import { InvalidIdempotencyKeyError } from './errors/errors';
import { fieldValues } from './http/node-request';

/** The request header, draft-ietf-httpapi-idempotency-key-header-07, which expired in April 2026. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** The response header of a repeated creation that was answered like the first. Its value is "true". */
export const IDEMPOTENT_REPLAYED = 'Idempotent-Replayed';

/** 1 to 255 visible ASCII characters, RFC 5234 VCHAR. */
const KEY = /^[!-~]{1,255}$/;
/**
 * A field value: the content of an RFC 9651 String, section 3.3.3, or a key without quotation marks. A
 * comma would separate the values of a list, RFC 9110 section 5.3.
 */
const VALUE = /^(?:"((?:[^"\\]|\\["\\])*)"|([^",]*))$/;

/**
 * Reads the idempotency key of a request: `"abc"`, a String of RFC 9651, is the same key as `abc`.
 *
 * @returns undefined when the request has none
 * @throws InvalidIdempotencyKeyError when the field is malformed, empty or repeated
 */
export function idempotencyKeyOf(request: IncomingMessage): string | undefined {
  // Node joins the values of several fields with a comma and a space, which no key has.
  const field = request.headers['idempotency-key'];
  if (field === undefined) return undefined;
  const [, quoted, bare = ''] = VALUE.exec(String(field)) ?? [];
  const key = quoted?.replaceAll(/\\(.)/g, '$1') ?? bare;
  if (!KEY.test(key) && fieldValues(request, 'idempotency-key').length > 1) {
    throw new InvalidIdempotencyKeyError(
      'The request must not have more than one Idempotency-Key header.',
    );
  }
  assertIdempotencyKey(key);
  return key;
}

/**
 * The SHA-256 of a key and its caller, in hexadecimal digits: what a store keeps of both.
 *
 * @throws InvalidIdempotencyKeyError unless the key is of 1 to 255 visible ASCII characters
 */
export function digestIdempotencyKey(key: string, caller: Caller | undefined): string {
  assertIdempotencyKey(key);
  // A JSON array, so that no two callers and keys come out the same.
  return hash('sha256', JSON.stringify([...(caller ? identityOf(caller) : []), key]));
}

/** @throws InvalidIdempotencyKeyError unless the key is of 1 to 255 visible ASCII characters */
function assertIdempotencyKey(key: string): void {
  if (KEY.test(key)) return;
  throw new InvalidIdempotencyKeyError(
    'The Idempotency-Key must be 1 to 255 visible ASCII characters, as they are or as a quoted string.',
  );
}
