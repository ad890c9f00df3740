import { hash } from 'node:crypto';
import { type Caller, identityOf } from './auth/caller';
import { InvalidIdempotencyKeyError } from './errors/errors';

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

/** The SHA-256 of a key and its caller, in hexadecimal digits: what a store keeps of both. */
export function digestIdempotencyKey(key: string, caller: Caller | undefined): string {
  assertIdempotencyKey(key);
  // A JSON array, so that no two callers and keys come out the same.
  return hash('sha256', JSON.stringify([...(caller ? identityOf(caller) : []), key]));
}
