import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** A request id that a client may choose: harmless in a log and on a terminal. */
const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/;

/** The `X-Request-Id` of a request if that is well-formed, or else a new id. */
export function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
}
