import type { IncomingMessage } from 'node:http';
import type { Caller } from '../auth/caller';

/** A request as Nest hands it out: Fastify wraps Node's, Express extends it. */
export type HostRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & {
  /** The body as a parser of the host left it: parsed, or the bytes themselves. */
  readonly body?: unknown;
  /** The bytes of the body, when the host was created with Nest's `rawBody: true`. */
  readonly rawBody?: Buffer;
  /** Who calls, as our guard or one of the host has found out. */
  caller?: Partial<Caller>;
  /** The id of the new plant, once its content is valid. */
  plantId?: bigint;
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
