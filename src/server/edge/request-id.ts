import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Client-supplied request ids that are safe to log and print. */
const SAFE_REQUEST_ID = /^[\w.:/+=@-]{1,128}$/;

/** Returns the `X-Request-Id` of a request if it is safe, otherwise a new id. */
export function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && SAFE_REQUEST_ID.test(given) ? given : randomUUID();
}
