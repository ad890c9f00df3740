import type { IncomingMessage } from 'node:http';

/** A request as Nest hands it out: Fastify wraps Node's, Express extends it. */
export type HostRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & {
  /** The body as a parser of the host left it: parsed, or the bytes themselves. */
  readonly body?: unknown;
  /** The bytes of the body, when the host was created with Nest's `rawBody: true`. */
  readonly rawBody?: Buffer;
};

export function nodeRequest(request: HostRequest): IncomingMessage {
  return 'raw' in request ? request.raw : request;
}

/**
 * The path of a request target, RFC 9112 section 3.2, for logs and traces: without query and
 * authority, which may hold secrets.
 */
export function pathOf(target: string): string {
  const [withoutQuery = ''] = target.split('?', 1);
  return withoutQuery.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '');
}

/**
 * Every value of a header field, in the order sent. Node's `headers` keeps one of several
 * `Authorization`, `Content-Type` or `Host` fields and hides the rest.
 *
 * @param name in lower case
 */
export function fieldValues(request: IncomingMessage, name: string): string[] {
  const { rawHeaders } = request;
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const field = rawHeaders[at] ?? '';
    const isSameLength = field.length === name.length;
    if (isSameLength && field.toLowerCase() === name) values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
/** RFC 9110 section 5.6.4, where a backslash stands for the character after it. */
const QUOTED_STRING = '"(?:[^"\\\\]|\\\\.)*"';
const UTF_8 = 'utf-8|"\\\\?u\\\\?t\\\\?f\\\\?-\\\\?8"';
const PARAMETER = `charset=(?:${UTF_8})|(?!charset=)${TOKEN}=(?:${TOKEN}|${QUOTED_STRING})`;

/** RFC 9110 sections 8.3.1 and 5.6.6, which allows empty parameters. */
const JSON_IN_UTF_8 = new RegExp(
  `^application/json[ \\t]*(?:;[ \\t]*(?:(?:${PARAMETER})[ \\t]*)?)*$`,
  'i',
);

/**
 * Whether a `Content-Type` says JSON in UTF-8: `application/json`, in any case, with any well-formed
 * parameters but a `charset` other than `utf-8`.
 *
 * Tried instead: `content-type` and Node's `MIMEType` accept malformed parameters, and all of them,
 * `fast-content-type-parse` too, keep one of two charsets and hide the other.
 */
export function isJsonMediaType(contentType: string): boolean {
  return contentType === 'application/json' || JSON_IN_UTF_8.test(contentType);
}
