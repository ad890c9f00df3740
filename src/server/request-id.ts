import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** What a caller may choose as a request id: nothing that a log or a terminal would take amiss. */
const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/;

/**
 * Makes the Fastify option `genReqId`: takes a well-formed `X-Request-Id` from the request, or else
 * makes an id that no other process makes.
 */
export function requestIds(): (request: Pick<IncomingMessage, 'headers'>) => string {
  const prefix = randomBytes(9).toString('base64url');
  let count = 0;
  return ({ headers }) => {
    const given = headers['x-request-id'];
    if (typeof given === 'string' && REQUEST_ID.test(given)) return given;
    return `${prefix}-${(++count).toString(36)}`;
  };
}
