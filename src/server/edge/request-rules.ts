import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { TLSSocket } from 'node:tls';
import {
  MalformedRequestError,
  NotImplementedError,
  PlantStoreError,
} from '../../plants/errors/errors';
import { fieldValues, pathOf } from '../../plants/http/request';

/** RFC 3986 section 3.2.2: a registered name or an IPv4 address, which may be empty, and a port. */
const NAMED_HOST = /^(?:[\w.~!$&'()*+,;=-]|%[\dA-Fa-f]{2})*(?::\d*)?$/;

/** RFC 3986 section 3.2.2: an IPv6 address or one of a later version, and a port. */
const BRACKETED_HOST = /^\[(?:([\d.:A-Fa-f]+)|v[\dA-Fa-f]+\.[\w.~!$&'()*+,;=:-]+)\](?::\d*)?$/i;

/** RFC 9112 section 3.2.1. */
const ORIGIN_FORM = /^\/(?:[\w.~!$&'()*+,;=:@/?-]|%[\dA-Fa-f]{2})*$/;

/** RFC 9112 section 3.2.2: scheme, authority, path and query. */
const ABSOLUTE_FORM = /^(https?):\/\/([^/?#]+)([/?].*)?$/i;

/** RFC 3986 section 2.3: the escapes of characters that mean the same without one. */
const UNRESERVED = /%(?:[46][1-9A-F]|[57][\dA]|3\d|2D|2E|5F|7E)/gi;

/**
 * Finds a fault in the head of a request after which its connection must close: rules of HTTP that
 * Node leaves to the application, or answers with an empty body.
 */
export function findHeadFault(request: IncomingMessage): PlantStoreError | undefined {
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
  const codings = headers['transfer-encoding'];
  return codings === undefined ? undefined : findCodingFault(membersOf(codings), httpVersionMinor);
}

/** RFC 9112 sections 6.1 and 6.3. */
function findCodingFault(
  codings: readonly string[],
  httpVersionMinor: number,
): PlantStoreError | undefined {
  if (httpVersionMinor === 0) {
    return new MalformedRequestError(
      'An HTTP/1.0 request must not have a Transfer-Encoding header.',
    );
  }
  if (codings.length === 1 && codings[0] === 'chunked') return undefined;
  return codings.at(-1) === 'chunked'
    ? new NotImplementedError('The only transfer coding supported is chunked.')
    : new MalformedRequestError('The last transfer coding must be chunked.');
}

function isHost(value: string): boolean {
  if (NAMED_HOST.test(value)) return true;
  const [isBracketed, ipv6] = BRACKETED_HOST.exec(value) ?? [];
  return isBracketed !== undefined && (ipv6 === undefined || isIPv6(ipv6));
}

/**
 * The target of a request in origin form with no needless escape, RFC 9112 section 3.2 and RFC 3986
 * section 6.2.2.2. Routers have rules of their own about all others. Undefined when it is malformed, or
 * of a form that its method must not have.
 */
export function normalizeTarget({ url = '', socket }: IncomingMessage): string | undefined {
  const target = url.startsWith('/') ? url : toOriginForm(url, socket instanceof TLSSocket);
  if (target === undefined || !ORIGIN_FORM.test(target)) return undefined;
  if (!target.includes('%')) return target;
  try {
    // Escapes that are no UTF-8 name no path.
    decodeURIComponent(pathOf(target));
  } catch {
    return undefined;
  }
  return target.replace(UNRESERVED, decodeURIComponent);
}

/** The path and query of a target in absolute form; undefined when it has another form. */
function toOriginForm(target: string, isSecure: boolean): string | undefined {
  const [, scheme, authority, rest = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  if (scheme === undefined || authority === undefined) return undefined;
  // RFC 9110 sections 4.2.1 and 4.2.4: a host is required, and user information refused.
  if (authority.startsWith(':') || !isHost(authority)) return undefined;
  // RFC 9110 section 7.4: an https resource needs a secured connection.
  if (scheme.length === 5 && !isSecure) return undefined;
  // RFC 9110 section 4.2.3: an empty path is that of the root.
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Whether the answer to a request closes the connection, RFC 9112 section 9.3. */
export function closesConnection({ headers, httpVersionMinor }: IncomingMessage): boolean {
  const { connection, upgrade } = headers;
  // RFC 9110 section 7.8 lets us ignore it. Node.js does too, but drops bytes behind it.
  if (upgrade !== undefined) return true;
  if (connection === undefined) return httpVersionMinor === 0;
  const options = membersOf(connection);
  // Node.js does not look for "close" in HTTP/1.0.
  return options.includes('close') || (httpVersionMinor === 0 && !options.includes('keep-alive'));
}

/** The members of a list in a header field, RFC 9110 section 5.6.1, in lower case. */
export function membersOf(list = ''): string[] {
  const members = list.toLowerCase().split(',').map(withoutBlanks);
  return members.filter((member) => member !== '');
}

/** A loop, because a regular expression for the blanks at the end takes quadratic time. */
function withoutBlanks(text: string): string {
  const isBlank = (at: number): boolean => text[at] === ' ' || text[at] === '\t';
  let start = 0;
  let end = text.length;
  while (isBlank(start)) start++;
  while (end > start && isBlank(end - 1)) end--;
  return text.slice(start, end);
}
