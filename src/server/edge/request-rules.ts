import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';
import { TLSSocket } from 'node:tls';
import {
  MalformedRequestError,
  NotImplementedError,
  PlantStoreError,
} from '../../plants/errors/errors';
import { headerValues, pathOf } from '../../plants/http/request';

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
 * Validates HTTP rules whose violation must close the connection, and that Node.js leaves to the
 * application or answers with an empty body. Returns the error of the first violation.
 */
export function validateHeaders(request: IncomingMessage): PlantStoreError | undefined {
  const { httpVersionMajor, httpVersionMinor, headers } = request;
  if (httpVersionMajor !== 1) {
    return new MalformedRequestError('The request line must name HTTP/1.1 or HTTP/1.0.');
  }
  // RFC 9112 section 3.2
  const [host, ...others] = headerValues(request, 'host');
  if (others.length > 0 || (host === undefined && httpVersionMinor > 0)) {
    return new MalformedRequestError('The request must have exactly one Host header.');
  }
  if (host !== undefined && !isHost(host)) {
    return new MalformedRequestError('The Host header must be a host, or a host and a port.');
  }
  const codings = headers['transfer-encoding'];
  return codings === undefined
    ? undefined
    : validateTransferEncoding(parseHeaderList(codings), httpVersionMinor);
}

/** RFC 9112 sections 6.1 and 6.3. */
function validateTransferEncoding(
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
 * Returns the target of a request in origin form without needless escapes, RFC 9112 section 3.2 and RFC
 * 3986 section 6.2.2.2. Routers disagree about other forms. Returns undefined if the target is malformed,
 * or has a form that its method does not allow.
 */
export function normalizeTarget({ url = '', socket }: IncomingMessage): string | undefined {
  const target = url.startsWith('/') ? url : toOriginForm(url, socket instanceof TLSSocket);
  if (target === undefined || !ORIGIN_FORM.test(target)) return undefined;
  if (!target.includes('%')) return target;
  try {
    // Percent-escapes that are not valid UTF-8 are rejected.
    decodeURIComponent(pathOf(target));
  } catch {
    return undefined;
  }
  return target.replace(UNRESERVED, decodeURIComponent);
}

/** Returns the path and query of a target in absolute form, or undefined if it has another form. */
function toOriginForm(target: string, isSecure: boolean): string | undefined {
  const [, scheme, authority, rest = ''] = ABSOLUTE_FORM.exec(target) ?? [];
  if (scheme === undefined || authority === undefined) return undefined;
  // RFC 9110 sections 4.2.1 and 4.2.4: a host is required, and user information is rejected.
  if (authority.startsWith(':') || !isHost(authority)) return undefined;
  // RFC 9110 section 7.4: an https target requires a TLS connection.
  if (scheme.length === 5 && !isSecure) return undefined;
  // RFC 9110 section 4.2.3: an empty path means the root.
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Whether the connection must close after the response, RFC 9112 section 9.3. */
export function closesConnection({ headers, httpVersionMinor }: IncomingMessage): boolean {
  const { connection, upgrade } = headers;
  // RFC 9110 section 7.8 allows ignoring `Upgrade`. Node.js ignores it, but discards the bytes that follow.
  if (upgrade !== undefined) return true;
  if (connection === undefined) return httpVersionMinor === 0;
  const options = parseHeaderList(connection);
  // Node.js ignores "close" in HTTP/1.0.
  return options.includes('close') || (httpVersionMinor === 0 && !options.includes('keep-alive'));
}

/** Splits the value of a list header, RFC 9110 section 5.6.1, into lowercase elements. */
export function parseHeaderList(list: string): string[] {
  const elements = list.toLowerCase().split(',').map(trimBlanks);
  return elements.filter((element) => element !== '');
}

/** Removes spaces and tabs. Uses loops, because a regular expression for trailing blanks takes quadratic time. */
function trimBlanks(text: string): string {
  const isBlank = (at: number): boolean => text[at] === ' ' || text[at] === '\t';
  let start = 0;
  let end = text.length;
  while (isBlank(start)) start++;
  while (end > start && isBlank(end - 1)) end--;
  return text.slice(start, end);
}
