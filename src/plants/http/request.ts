import type { IncomingMessage, ServerResponse } from 'node:http';
import { createParamDecorator } from '@nestjs/common';
import type { PlantStoreError, RequestOutcome } from '../errors/errors';

/** A request as Nest passes it on: Fastify wraps the request of Node.js, Express extends it. */
export type HostRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & {
  /** The body as a parser of the host parsed it. */
  readonly body?: unknown;
  /** The bytes of the body, if the host was created with the option `rawBody: true` of Nest. */
  readonly rawBody?: Buffer;
  /** The request id, set by Fastify or by middleware of the host. */
  readonly id?: unknown;
  /** The id of the new plant, once its content is valid. */
  plantId?: bigint;
  /** The outcome of the request. The controller sets it once the plant is stored. */
  outcome?: RequestOutcome;
  /** The error of the response. The exception filter sets it. */
  failure?: PlantStoreError;
};

/** A response as Nest passes it on. */
export type HostResponse = ServerResponse | { readonly raw: ServerResponse };

export function nodeRequest(request: HostRequest): IncomingMessage {
  return 'raw' in request ? request.raw : request;
}

export function nodeResponse(response: HostResponse): ServerResponse {
  return 'raw' in response ? response.raw : response;
}

/**
 * Returns the path of a request target, RFC 9112 section 3.2, for logs and traces. Omits the query and the
 * authority, because they may contain secrets.
 */
export function pathOf(target: string): string {
  const [withoutQuery = ''] = target.split('?', 1);
  return withoutQuery.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/]*/i, '');
}

/**
 * Returns every value of a header, in the order sent. `headers` of Node.js keeps only one of several
 * `Authorization`, `Content-Type` or `Host` headers.
 *
 * @param name the name of the header in lower case
 */
export function headerValues(request: IncomingMessage, name: string): string[] {
  const { rawHeaders } = request;
  const values: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at] ?? '';
    const isSameLength = header.length === name.length;
    if (isSameLength && header.toLowerCase() === name) values.push(rawHeaders[at + 1] ?? '');
  }
  return values;
}

/**
 * Passes the context of the request to a pipe that reads the body. Nest treats it as a parameter of type
 * `custom`, which a global `ValidationPipe` of a host skips.
 */
export const HttpContext = createParamDecorator((_: unknown, context) => context);
