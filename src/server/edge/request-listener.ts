import type { IncomingMessage, RequestListener, Server } from 'node:http';
import { MalformedRequestError, NotFoundError, PlantStoreError } from '../../plants/errors/errors';
import type { Connections } from './connections';
import type { Rejections } from './rejections';
import { normalizeTarget, parseHeaderList, validateHeaders } from './request-rules';

/**
 * Handles the requests of a server before any router or hook. Validates the headers of each request, and
 * rejects the request or passes it on.
 *
 * @param next called for each valid request, with its target in origin form
 */
export function listenForRequests(
  server: Server,
  connections: Connections,
  rejections: Rejections,
  next: RequestListener,
): void {
  const receive: RequestListener = (request, response) => {
    connections.handleInOrder(request, response, () => {
      const error = validateRequest(request);
      if (error) rejections.reject(request, response, error);
      else next(request, response);
    });
  };
  // Node.js emits exactly one of these events per request.
  server.on('request', receive).on('checkContinue', receive).on('checkExpectation', receive);
}

function validateRequest(request: IncomingMessage): PlantStoreError | undefined {
  const error = validateHeaders(request);
  if (error) return error;
  // `OPTIONS *` addresses the server as a whole, which is not a resource here.
  if (request.url === '*' && request.method === 'OPTIONS') return new NotFoundError();
  const target = normalizeTarget(request);
  if (target === undefined) return new MalformedRequestError('The request target is malformed.');
  request.url = target;

  const { headers } = request;
  if (headers.expect === undefined) return undefined;
  const expectations = parseHeaderList(headers.expect);
  if (request.httpVersionMinor === 0 || expectations.length === 0) delete headers.expect;
  else if (expectations.some((each) => each !== '100-continue')) {
    return new PlantStoreError('expectationFailed');
  }
  return undefined;
}
