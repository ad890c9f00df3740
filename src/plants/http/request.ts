import type { IncomingMessage, ServerResponse } from 'node:http';
import { createParamDecorator } from '@nestjs/common';
import type { PlantStoreError, RequestOutcome } from '../errors/errors';

/** A request as Nest hands it out: Fastify wraps Node's, Express extends it. */
export type HostRequest = (IncomingMessage | { readonly raw: IncomingMessage }) & {
  /** The body as a parser of the host has left it. */
  readonly body?: unknown;
  /** The bytes of the body, when the host was created with Nest's `rawBody: true`. */
  readonly rawBody?: Buffer;
  /** Chosen by Fastify, or by middleware of the host. */
  readonly id?: unknown;
  /** The id of the new plant, once its content is valid. */
  plantId?: bigint;
  /** What became of the plant. The controller sets it once the plant is stored. */
  outcome?: RequestOutcome;
  /** The error of the response. The exception filter sets it. */
  failure?: PlantStoreError;
};

/** A response as Nest hands it out. */
export type HostResponse = ServerResponse | { readonly raw: ServerResponse };

export function nodeRequest(request: HostRequest): IncomingMessage {
  return 'raw' in request ? request.raw : request;
}

export function nodeResponse(response: HostResponse): ServerResponse {
  return 'raw' in response ? response.raw : response;
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

/**
 * The context of the request, for a pipe that reads the body. To Nest it is a parameter of type
 * `custom`, which a global `ValidationPipe` of a host leaves alone.
 */
export const HttpContext = createParamDecorator((_: unknown, context) => context);
