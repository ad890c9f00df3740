import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** A request id that a client may choose: harmless in a log and on a terminal. */
const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/;

/**
 * Creates the Fastify option `genReqId`: it takes a well-formed `X-Request-Id` from the request, or
 * makes an id that is unique across processes.
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
