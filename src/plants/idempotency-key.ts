import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { type Caller, identityOf } from '../auth';
import { InvalidIdempotencyKeyError } from '../errors';
import { fieldValues } from '../http';

/** The request header, draft-ietf-httpapi-idempotency-key-header-07. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** The response header of a repeated creation that was answered like the first. Its value is "true". */
export const IDEMPOTENT_REPLAYED = 'Idempotent-Replayed';

/** The name of the header as Node has it. */
const FIELD = 'idempotency-key';

/** 1 to 255 visible ASCII characters, RFC 5234 VCHAR. */
const KEY = /^[!-~]{1,255}$/;
/** The content of an RFC 9651 String, section 3.3.3. */
const STRING = /^"((?:[^"\\]|\\["\\])*)"$/;
/** A key without quotation marks. A comma would separate the values of a list, RFC 9110 section 5.3. */
const BARE = /^[^",]*$/;

/**
 * Reads the idempotency key of a request: `"abc"`, as a String of RFC 9651, or `abc`, which is the
 * same key.
 *
 * @returns undefined when the request has none
 * @throws InvalidIdempotencyKeyError when the field is malformed, empty or repeated
 */
export function idempotencyKeyOf(request: IncomingMessage): string | undefined {
  if (request.headers[FIELD] === undefined) return undefined;
  const [value = '', ...others] = fieldValues(request, FIELD);
  if (others.length > 0) {
    throw new InvalidIdempotencyKeyError(
      'The request must not have more than one Idempotency-Key header.',
    );
  }
  const quoted = STRING.exec(value)?.[1]?.replaceAll(/\\(.)/g, '$1');
  const key = quoted ?? (BARE.test(value) ? value : '');
  assertIdempotencyKey(key);
  return key;
}

/** @throws InvalidIdempotencyKeyError unless the key is of 1 to 255 visible ASCII characters */
export function assertIdempotencyKey(key: string): void {
  if (KEY.test(key)) return;
  throw new InvalidIdempotencyKeyError(
    'The Idempotency-Key must be 1 to 255 visible ASCII characters, as they are or as a quoted string.',
  );
}

/**
 * Makes the digest that is stored with a plant. The same key of two callers gives two digests.
 *
 * @param caller undefined when the caller is unknown
 * @param mounting the path of the module, which takes the place of an unknown caller
 * @returns SHA-256 in hexadecimal
 */
export function digestIdempotencyKey(
  key: string,
  caller: Caller | undefined,
  mounting: string,
): string {
  const scope = caller === undefined ? ['mounting', mounting] : identityOf(caller);
  // As JSON, so that no two lists of texts come out the same.
  return hash('sha256', JSON.stringify([...scope, key]));
}
