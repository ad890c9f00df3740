import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { TLSSocket } from 'node:tls';
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

/** RFC 3986 section 3.2.2: a registered name or an IPv4 address, which may be empty, and a port. */
const NAMED_HOST = /^(?:[\w.~!$&'()*+,;=-]|%[\dA-Fa-f]{2})*(?::\d*)?$/;

/** RFC 3986 section 3.2.2: an IPv6 address or one of a later version, and a port. */
const BRACKETED_HOST = /^\[(?:([\d.:A-Fa-f]+)|v[\dA-Fa-f]+\.[\w.~!$&'()*+,;=:-]+)\](?::\d*)?$/i;

/** RFC 9112 section 3.2.1. */
const ORIGIN_FORM = /^\/(?:[\w.~!$&'()*+,;=:@/?-]|%[\dA-Fa-f]{2})*$/;

/** RFC 9112 section 3.2.2: scheme, authority, path and query. */
const ABSOLUTE_FORM = /^(https?):\/\/([^/?#]+)([/?].*)?$/i;

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
  if (host !== undefined && !isHost(host)) {
    return new MalformedRequestError('The Host header must be a host, or a host and a port.');
  }
  const codings = headers['transfer-encoding']?.toLowerCase();
  return codings === undefined ? undefined : faultOfCodings(codings, httpVersionMinor);
}

/** RFC 9112 sections 6.1 and 6.3. */
function faultOfCodings(codings: string, httpVersionMinor: number): PlantStoreError | undefined {
  if (httpVersionMinor === 0) {
    return new MalformedRequestError(
      'An HTTP/1.0 request must not have a Transfer-Encoding header.',
    );
  }
  const members = membersOf(codings);
  if (members.length === 1 && members[0] === 'chunked') return undefined;
  return members.at(-1) === 'chunked'
    ? new NotImplementedError('The only transfer coding supported is chunked.')
    : new MalformedRequestError('The last transfer coding must be chunked.');
}

function isHost(value: string): boolean {
  if (NAMED_HOST.test(value)) return true;
  const [isBracketed, ipv6] = BRACKETED_HOST.exec(value) ?? [];
  return isBracketed !== undefined && (ipv6 === undefined || isIPv6(ipv6));
}

/**
 * Finds a fault in the target of a request: a malformed one, an unknown path, or a method that it does
 * not answer.
 */
export function faultOfTarget(
  request: FastifyRequest,
  instance: FastifyInstance,
): PlantStoreError | undefined {
  const { url, raw } = request;
  if (!ORIGIN_FORM.test(url) && !isOtherTarget(url, raw)) {
    return new MalformedRequestError('The request target is malformed.');
  }
  // With CORS, every OPTIONS has a route.
  const isRouted = !request.is404 && (request.method !== 'OPTIONS' || isPreflight(request));
  if (isRouted) return undefined;
  // There is nothing at the root, although it leads a browser to the documentation.
  if (pathOf(url) === '/') return new NotFoundError();
  // Not hasRoute(), which would read the client's path as a route pattern.
  const allowed = instance.supportedMethods.filter(
    // Every path has the route of preflights, and no other answers OPTIONS.
    (method) => method !== 'OPTIONS' && Boolean(instance.findRoute({ method, url })),
  );
  return allowed.length > 0 ? new MethodNotAllowedError(allowed) : new NotFoundError();
}

/** Whether a target is in absolute or asterisk form, RFC 9112 section 3.2. */
function isOtherTarget(target: string, { method, socket }: IncomingMessage): boolean {
  if (target === '*') return method === 'OPTIONS';
  const [, scheme, authority, rest = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  return (
    scheme !== undefined &&
    authority !== undefined &&
    // RFC 9110 sections 4.2.1 and 4.2.4: a host is required, and user information refused.
    !authority.startsWith(':') &&
    isHost(authority) &&
    // RFC 9110 section 7.4: an https resource needs a secured connection.
    (scheme.length === 4 || socket instanceof TLSSocket) &&
    ORIGIN_FORM.test(rest.startsWith('/') ? rest : `/${rest}`)
  );
}

/** The members of a list in a header field, RFC 9110 section 5.6.1, in lower case. */
export function membersOf(list = ''): string[] {
  return list
    .toLowerCase()
    .split(/[ \t]*,[ \t]*/)
    .filter((member) => member !== '');
}
