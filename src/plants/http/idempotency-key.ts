import { hash } from 'node:crypto';
import { createParamDecorator } from '@nestjs/common';
import { type Caller, identifyCaller } from './caller';
import { InvalidIdempotencyKeyError } from '../errors/errors';
import { type HostRequest, nodeRequest } from './request';

/** The request header, draft-ietf-httpapi-idempotency-key-header-07, which expired in April 2026. */
export const IDEMPOTENCY_KEY = 'Idempotency-Key';

/** The header of a response to a retry whose plant was already stored. Its value is "true". */
export const IDEMPOTENT_REPLAYED = 'Idempotent-Replayed';

/**
 * Matches the value of the header, 1 to 255 visible ASCII characters, in one of two forms:
 *
 * - bare: no comma, which would separate list values (RFC 9110 section 5.3), and no quotation mark at its start;
 * - an RFC 9651 String (section 3.3.3): in quotation marks, with a backslash before each quotation mark and backslash.
 *
 * The OpenAPI document contains this expression, so it uses only syntax that all dialects share.
 */
export const KEY_PATTERN = new RegExp(
  String.raw`^(?:[!#-+\--~]{1,255}|"(?:[!#-\[\]-~]|\\["\\]){1,255}")$`,
);

const SYNTAX_MESSAGE =
  'The Idempotency-Key must be 1 to 255 visible ASCII characters, bare or as a quoted string.';

/**
 * Reads the `Idempotency-Key` header. The quoted string `"abc"` is the same key as `abc`.
 * @returns undefined if the request has none
 * @throws InvalidIdempotencyKeyError when the header is malformed, empty or repeated
 */
export const IdempotencyKey = createParamDecorator((_: unknown, context) => {
  const { headers } = nodeRequest(context.switchToHttp().getRequest<HostRequest>());
  if (headers['idempotency-key'] === undefined) return undefined;
  // Node.js joins repeated headers with a comma and a space. No key contains a space.
  const value = String(headers['idempotency-key']);
  if (!KEY_PATTERN.test(value)) throw new InvalidIdempotencyKeyError(SYNTAX_MESSAGE);
  return value.startsWith('"') ? value.slice(1, -1).replaceAll(/\\(.)/g, '$1') : value;
});

/**
 * Hashes a key and its caller with SHA-256, in hexadecimal digits. The store keeps only this digest.
 * @throws InvalidIdempotencyKeyError when in-process code passes an invalid key
 */
export function digestIdempotencyKey(key: string, caller: Caller | undefined): string {
  if (!/^[!-~]{1,255}$/.test(key)) throw new InvalidIdempotencyKeyError(SYNTAX_MESSAGE);
  // A JSON array, so that different pairs of caller and key never collide.
  return hash('sha256', JSON.stringify([...(caller ? identifyCaller(caller) : []), key]));
}
