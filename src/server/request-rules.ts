import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  MalformedRequestError,
  MethodNotAllowedError,
  NotFoundError,
  NotImplementedError,
  type PlantStoreError,
} from '../errors';
import { fieldValues, pathOf } from '../http';
import { isPreflight } from './cors';

/** RFC 9112 section 3.2: a host by RFC 3986 section 3.2.2, which may be empty, and an optional port. */
const HOST = /^(?:\[[\w.~!$&'()*+,;=:-]+\]|(?:[\w.~!$&'()*+,;=-]|%[\dA-Fa-f]{2})*)(?::\d*)?$/;

/**
 * Finds a fault in the head of a request after which its connection must close: rules of HTTP that
 * Node leaves to the application, or answers with an empty body.
 */
export function faultOfHead(request: IncomingMessage): PlantStoreError | undefined {
  const { httpVersionMajor, httpVersionMinor, headers } = request;
  if (httpVersionMajor !== 1) {
    return new MalformedRequestError('The request line must name HTTP/1.1 or HTTP/1.0.');
  }
  // RFC 9112 section 3.2
  const [host, ...others] = fieldValues(request, 'host');
  if (others.length > 0 || (host === undefined && httpVersionMinor > 0)) {
    return new MalformedRequestError('The request must have exactly one Host header.');
  }
  if (host !== undefined && !HOST.test(host)) {
    return new MalformedRequestError('The Host header must be a host, or a host and a port.');
  }
  const codings = headers['transfer-encoding']?.toLowerCase();
  return codings === undefined ? undefined : faultOfCodings(codings, httpVersionMinor);
}

/** RFC 9112 sections 6.1 and 6.3. */
function faultOfCodings(codings: string, httpVersionMinor: number): PlantStoreError | undefined {
  if (httpVersionMinor === 0) {
    return new MalformedRequestError('HTTP/1.0 has no transfer codings.');
  }
  if (codings === 'chunked') return undefined;
  return /(?:^|,)[ \t]*chunked$/.test(codings)
    ? new NotImplementedError('The only transfer coding supported is chunked.')
    : new MalformedRequestError('The last transfer coding must be chunked.');
}

/** Finds a fault in the target of a request: an unknown path, or a method that it does not answer. */
export function faultOfTarget(
  request: FastifyRequest,
  instance: FastifyInstance,
): PlantStoreError | undefined {
  // With CORS, every OPTIONS has a route.
  const isRouted = !request.is404 && (request.method !== 'OPTIONS' || isPreflight(request));
  if (isRouted) return undefined;
  const { url } = request;
  // There is nothing at the root, although it leads a browser to the documentation.
  if (pathOf(url) === '/') return new NotFoundError();
  // Not hasRoute(), which would read the client's path as a route pattern.
  const allowed = instance.supportedMethods.filter(
    // Every path has the route of preflights, and no other answers OPTIONS.
    (method) => method !== 'OPTIONS' && Boolean(instance.findRoute({ method, url })),
  );
  return allowed.length > 0 ? new MethodNotAllowedError(allowed) : new NotFoundError();
}
