import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { MalformedRequestError, NotFoundError, PlantStoreError } from '../../plants/errors/errors';
import type { Connections } from './connections';
import type { Rejections } from './rejections';
import { findHeadFault, membersOf, normalizeTarget } from './request-rules';

/**
 * Handles the requests of a server before any router or hook sees them: checks the head of each, and
 * refuses the request or hands it on.
 *
 * @param handOn gets each request that keeps the rules, with a target in origin form
 */
export function listenForRequests(
  server: Server,
  connections: Connections,
  rejections: Rejections,
  handOn: RequestListener,
): void {
  const receive: RequestListener = (request, response) => {
    connections.take(request, response, () => {
      const fault = checkHead(request);
      if (fault) rejections.reject(request, response, fault);
      else handOn(request, response);
    });
  };
  // Node.js emits one of these for each request.
  server.on('request', receive).on('checkContinue', receive).on('checkExpectation', receive);
}

function checkHead(request: IncomingMessage): PlantStoreError | undefined {
  const fault = findHeadFault(request);
  if (fault) return fault;
  // `OPTIONS *` asks about the server as a whole, for which there is no answer.
  if (request.url === '*' && request.method === 'OPTIONS') return new NotFoundError();
  const target = normalizeTarget(request);
  if (target === undefined) return new MalformedRequestError('The request target is malformed.');
  request.url = target;

  const { headers } = request;
  const expectations = membersOf(headers.expect);
  if (request.httpVersionMinor === 0 || expectations.length === 0) delete headers.expect;
  else if (expectations.some((each) => each !== '100-continue')) {
    return new PlantStoreError('expectationFailed');
  }
  return undefined;
}
